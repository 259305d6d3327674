#include "launcher/probe/cubin.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace tbsched::cuda {
namespace {

constexpr uint16_t kMachineCuda = 190;
constexpr int32_t kMaxRegisters = 255;
constexpr int kRegisterShift = 24;  // in a text section's sh_info, before compute capability 9.0

// One attribute of a .nv.info section. Only the sized format has a payload.
struct Attribute {
  uint8_t format;
  uint8_t kind;
  uint16_t size_or_value;
};
constexpr uint8_t kSized = 0x04;
constexpr uint8_t kFrameSize = 0x11;
constexpr uint8_t kMinimumStackSize = 0x12;
constexpr uint8_t kRegisterCount = 0x2f;
// Attributes in the section of a kernel.
constexpr uint8_t kParameterBank = 0x0a;
constexpr uint8_t kParameter = 0x17;
constexpr uint8_t kBlocksPerCluster = 0x3d;  // three numbers

constexpr int32_t kMaxClusterBlocks = 1024;  // along one dimension; no GPU has as many

// From compute capability 9.0 on a kernel's shared memory section includes the reserved memory.
constexpr std::string_view kReservedSection = ".nv.shared.reserved.";
constexpr int32_t kReservedBytes = 1024;

// The payload of the first three above.
struct Property {
  uint32_t symbol;
  uint32_t value;
};

// Throws std::invalid_argument: the image is no cubin.
[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("image: not a cubin: " + why);
}

// The payloads of a kernel's parameters: where they begin, and each.
struct ParameterBank {
  uint32_t symbol;
  uint16_t offset;
  uint16_t size;
};
struct ParameterInfo {
  uint32_t index;
  uint16_t ordinal;
  uint16_t offset;
  uint32_t rest;  // its size is in the highest bits
};
constexpr int kParameterSizeShift = 18;
constexpr uint16_t kMaxParameters = 4096;

// The bytes of a cubin, read with a check of their bounds. A view, not a copy: modules of programs
// have megabytes, and copying takes longer than reading.
class Image {
 public:
  explicit Image(const std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Returns the value at an offset.
  template <typename Value>
  Value load(const uint64_t offset) const {
    check(offset, sizeof(Value));
    Value value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(Value));
    return value;
  }

  // Throws std::invalid_argument if the image has no such bytes.
  void check(const uint64_t offset, const uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) refuse("it is cut short");
  }

  // Returns the text at an offset, which ends with a zero byte or the image.
  std::string_view text(const uint64_t offset) const {
    check(offset, 1);
    const char* const begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
    return {begin, strnlen(begin, bytes_.size() - offset)};
  }

 private:
  const std::span<const std::byte> bytes_;
};

// Calls action(name, offset of the header, header) for each section.
template <typename Action>
void for_each_section(const Image& image, const Action& action) {
  const auto header = image.load<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != kMachineCuda) {
    refuse("its ELF header is another");
  }
  if (header.e_shentsize != sizeof(Elf64_Shdr)) refuse("its section headers have another size");
  image.check(header.e_shoff, 0);
  const auto header_offset = [&](const uint16_t index) {
    return header.e_shoff + uint64_t{index} * sizeof(Elf64_Shdr);
  };
  const auto names = image.load<Elf64_Shdr>(header_offset(header.e_shstrndx));
  for (uint16_t index = 0; index < header.e_shnum; ++index) {
    const auto section = image.load<Elf64_Shdr>(header_offset(index));
    action(image.text(names.sh_offset + section.sh_name), header_offset(index), section);
  }
}

// Calls action(kind, offset of the payload, bytes of it) for each attribute of a section that has a
// payload.
template <typename Action>
void for_each_attribute(const Image& image, const Elf64_Shdr& section, const Action& action) {
  uint64_t offset = section.sh_offset;
  image.check(offset, section.sh_size);
  const uint64_t end = offset + section.sh_size;
  while (offset < end) {
    const auto attribute = image.load<Attribute>(offset);
    offset += sizeof(Attribute);
    if (attribute.format != kSized) continue;
    if (attribute.size_or_value > end - offset) refuse("an attribute of .nv.info is cut short");
    action(attribute.kind, offset, attribute.size_or_value);
    offset += attribute.size_or_value;
  }
}

// A copy of a cubin in which a kernel's numbers are changed.
class Patch {
 public:
  Patch(const std::span<const std::byte> image, const int32_t registers, const int32_t local_memory)
      : patched_(image.begin(), image.end()), registers_(registers), local_memory_(local_memory) {}

  // Changes the numbers, and returns the copy.
  std::vector<std::byte> apply() && {
    for_each_section(image_,
                     [this](const std::string_view name, const uint64_t offset,
                            const Elf64_Shdr& section) { patch_section(name, offset, section); });
    if (patched_counts_ == 0) refuse("no register count in .nv.info");
    return std::move(patched_);
  }

 private:
  // Changes the numbers in a section.
  void patch_section(const std::string_view name, const uint64_t offset, Elf64_Shdr section) {
    // From compute capability 10.0 on everything occurs twice, once for the later finalizer.
    if (name == ".nv.info" || name == ".nv.merc.nv.info") {
      for_each_attribute(image_, section,
                         [this](const uint8_t kind, const uint64_t offset, const size_t size) {
                           if (size == sizeof(Property)) patch_property(kind, offset);
                         });
    } else if (name.starts_with(".text.") && section.sh_info >> kRegisterShift != 0) {
      constexpr uint32_t symbol_mask = (1u << kRegisterShift) - 1;
      section.sh_info =
          (section.sh_info & symbol_mask) | (static_cast<uint32_t>(registers_) << kRegisterShift);
      store(offset, section);
    }
  }

  // Changes an attribute that states registers or local memory.
  void patch_property(const uint8_t kind, const uint64_t offset) {
    auto property = image_.load<Property>(offset);
    if (kind == kRegisterCount) {
      check_registers(property.value);
      property.value = static_cast<uint32_t>(registers_);
      ++patched_counts_;
    } else if (kind == kFrameSize || kind == kMinimumStackSize) {
      property.value = static_cast<uint32_t>(local_memory_);
    }
    store(offset, property);
  }

  // Writes a value into the copy.
  template <typename Value>
  void store(const uint64_t offset, const Value value) {
    image_.check(offset, sizeof(Value));
    std::memcpy(patched_.data() + offset, &value, sizeof(Value));
  }

  // Throws std::invalid_argument if the code needs more registers, or a thread cannot have as many.
  void check_registers(const uint32_t used) const {
    if (registers_ < static_cast<int32_t>(used) || registers_ > kMaxRegisters) {
      throw std::invalid_argument("Launch.registers: " + std::to_string(registers_) +
                                  " is outside " + std::to_string(used) + ".." +
                                  std::to_string(kMaxRegisters) +
                                  " (the probe kernel itself needs " + std::to_string(used) + ")");
    }
  }

  std::vector<std::byte> patched_;
  const Image image_{patched_};
  const int32_t registers_;
  const int32_t local_memory_;
  int patched_counts_ = 0;
};

// Reads the kernels of a cubin section by section.
class Reader {
 public:
  explicit Reader(const std::span<const std::byte> image) : image_(image) {}

  // Returns the kernels with what they use.
  std::vector<KernelUsage> kernels() {
    for_each_section(image_, [this](const std::string_view name, uint64_t,
                                    const Elf64_Shdr& section) { read_section(name, section); });
    std::vector<KernelUsage> usages;
    for (auto& [name, kernel] : kernels_) {
      kernel.name = name;
      const auto symbol = symbols_.find(name);
      if (symbol == symbols_.end()) refuse("a kernel has no symbol");
      kernel.registers = registers_[symbol->second];
      kernel.local_memory = local_memory_[symbol->second];
      if (const auto code = code_.find(name); code != code_.end()) {
        std::tie(kernel.code_at, kernel.code_size) = code->second;
      }
      if (has_reserved_section_ && kernel.static_shared_memory > 0) {
        kernel.static_shared_memory = std::max(0, kernel.static_shared_memory - kReservedBytes);
      }
      usages.push_back(kernel);
    }
    if (usages.empty()) refuse("there are no kernels in it");
    return usages;
  }

 private:
  // Reads what a section says of its kernel, or of all.
  void read_section(const std::string_view name, const Elf64_Shdr& section) {
    constexpr std::string_view info = ".nv.info.";
    constexpr std::string_view shared = ".nv.shared.";
    constexpr std::string_view text = ".text.";
    if (name == ".nv.info") {
      for_each_attribute(image_, section,
                         [this](const uint8_t kind, const uint64_t offset, const size_t size) {
                           if (size == sizeof(Property)) read_property(kind, offset);
                         });
    } else if (name.starts_with(info)) {
      read_kernel(kernels_[std::string(name.substr(info.size()))], section);
    } else if (name.starts_with(text)) {
      image_.check(section.sh_offset, section.sh_size);
      code_[std::string(name.substr(text.size()))] = {section.sh_offset, section.sh_size};
    } else if (name.starts_with(kReservedSection)) {
      has_reserved_section_ = true;
    } else if (name.starts_with(shared)) {
      kernels_[std::string(name.substr(shared.size()))].static_shared_memory =
          static_cast<int32_t>(std::min<uint64_t>(section.sh_size, INT32_MAX));
    } else if (section.sh_type == SHT_SYMTAB && section.sh_entsize == sizeof(Elf64_Sym)) {
      read_symbols(section);
    }
  }

  // Notes the registers or local memory of a symbol.
  void read_property(const uint8_t kind, const uint64_t offset) {
    const auto property = image_.load<Property>(offset);
    const auto value = static_cast<int32_t>(property.value);
    if (kind == kRegisterCount) registers_[property.symbol] = value;
    if (kind == kMinimumStackSize) local_memory_[property.symbol] = value;
  }

  // Reads the section of a kernel: its parameters and its cluster.
  void read_kernel(KernelUsage& kernel, const Elf64_Shdr& section) {
    using Extent = std::array<int32_t, 3>;
    for_each_attribute(image_, section,
                       [&](const uint8_t kind, const uint64_t offset, const size_t size) {
                         if (kind == kParameter && size == sizeof(ParameterInfo)) {
                           read_parameter(kernel, image_.load<ParameterInfo>(offset));
                         }
                         if (kind == kParameterBank && size == sizeof(ParameterBank)) {
                           kernel.parameters_at = image_.load<ParameterBank>(offset).offset;
                         }
                         if (kind != kBlocksPerCluster || size != sizeof(Extent)) return;
                         const auto extent = image_.load<Extent>(offset);
                         kernel.cluster = 1;
                         for (const int32_t each : extent) {
                           if (each < 1 || each > kMaxClusterBlocks)
                             refuse("a cluster has " + std::to_string(each) + " blocks");
                           kernel.cluster *= each;
                         }
                       });
  }

  // Notes a parameter of a kernel.
  static void read_parameter(KernelUsage& kernel, const ParameterInfo& info) {
    if (info.ordinal >= kMaxParameters) refuse("a kernel has too many parameters");
    if (kernel.parameters.size() <= info.ordinal) kernel.parameters.resize(info.ordinal + 1u);
    kernel.parameters[info.ordinal] = {info.offset,
                                       static_cast<uint16_t>(info.rest >> kParameterSizeShift)};
  }

  // Notes the index of each function's symbol.
  void read_symbols(const Elf64_Shdr& section) {
    image_.check(section.sh_offset, section.sh_size);
    const auto header = image_.load<Elf64_Ehdr>(0);
    if (section.sh_link >= header.e_shnum) refuse("its symbols have no names");
    const auto names =
        image_.load<Elf64_Shdr>(header.e_shoff + uint64_t{section.sh_link} * sizeof(Elf64_Shdr));
    const auto count = static_cast<uint32_t>(section.sh_size / sizeof(Elf64_Sym));
    for (uint32_t index = 0; index < count; ++index) {
      const auto symbol =
          image_.load<Elf64_Sym>(section.sh_offset + uint64_t{index} * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      symbols_[std::string(image_.text(names.sh_offset + symbol.st_name))] = index;
    }
  }

  const Image image_;
  std::map<std::string, KernelUsage> kernels_;                 // by name
  std::map<std::string, uint32_t> symbols_;                    // index, by name
  std::map<std::string, std::pair<uint64_t, uint64_t>> code_;  // offset and bytes, by name
  std::map<uint32_t, int32_t> registers_;                      // by symbol
  std::map<uint32_t, int32_t> local_memory_;                   // by symbol
  bool has_reserved_section_ = false;
};

}  // namespace

std::vector<KernelUsage> usage(const std::span<const std::byte> image) {
  return Reader(image).kernels();
}

std::vector<std::byte> patch(const std::span<const std::byte> image, const int32_t registers,
                             const int32_t local_memory) {
  if (local_memory < 0) {
    throw std::invalid_argument("Launch.local_memory: " + std::to_string(local_memory) +
                                " is less than 0");
  }
  return Patch(image, registers, local_memory).apply();
}

}  // namespace tbsched::cuda
