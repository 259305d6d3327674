// The file of a capture. Whenever the process ends, the file has only whole lines.
#pragma once

#include <string>
#include <string_view>

namespace tbsched::capture {

// A new file that is only appended to.
class Output {
 public:
  // Creates the file `path`, or, if it exists, the same path with the number of this process before
  // its ending: an existing file is never written to. Throws std::runtime_error if it cannot be
  // created.
  static Output open(const std::string& path);

  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();

  // Writes whole lines. After an error, as on a full disk, reports it on standard error once and
  // writes nothing more.
  void write(std::string_view lines);

  const std::string& path() const { return path_; }

 private:
  Output(std::string path, int descriptor);

  std::string path_;
  int descriptor_;
};

}  // namespace tbsched::capture
