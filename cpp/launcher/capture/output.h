// The file of a capture, which is whole up to a line whenever the process ends.
#pragma once

#include <string>
#include <string_view>

namespace tbsched::capture {

class Output {
 public:
  // `path`, or where something is there, as of another process, the same with the number of this
  // process before its ending: a file that is there is never written to. Throws std::runtime_error:
  // it cannot be written.
  static Output open(const std::string& path);

  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  // Writes whole lines. Once that fails, as on a full disk, it says so on standard error and writes
  // nothing more.
  void write(std::string_view lines);

  const std::string& path() const { return path_; }

 private:
  Output(std::string path, int descriptor);

  std::string path_;
  int descriptor_;
};

}  // namespace tbsched::capture
