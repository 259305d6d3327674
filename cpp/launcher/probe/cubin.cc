#include "launcher/probe/cubin.h"

#include <elf.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tbsched::cuda {
namespace {

constexpr uint16_t kMachineCuda = 190;
constexpr int32_t kMostRegisters = 255;
constexpr int kRegisterShift = 24;  // in a text section's sh_info, before compute capability 9.0

// One attribute of a .nv.info section. Only the sized format carries a payload.
struct Attribute {
  uint8_t format;
  uint8_t kind;
  uint16_t size_or_value;
};
constexpr uint8_t kSized = 0x04;
constexpr uint8_t kFrameSize = 0x11;
constexpr uint8_t kMinimumStackSize = 0x12;
constexpr uint8_t kRegisterCount = 0x2f;

// The payload of the three above.
struct Property {
  uint32_t symbol;
  uint32_t value;
};

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("image: not a cubin of one kernel: " + why);
}

class Image {
 public:
  explicit Image(const std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}

  template <typename Value>
  Value load(const uint64_t offset) const {
    check(offset, sizeof(Value));
    Value value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(Value));
    return value;
  }

  template <typename Value>
  void store(const uint64_t offset, const Value value) {
    check(offset, sizeof(Value));
    std::memcpy(bytes_.data() + offset, &value, sizeof(Value));
  }

  void check(const uint64_t offset, const uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) refuse("it is cut short");
  }

  std::string_view text(const uint64_t offset) const {
    check(offset, 1);
    const char* const begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
    return {begin, strnlen(begin, bytes_.size() - offset)};
  }

  std::vector<std::byte> release() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Patch {
 public:
  Patch(const std::span<const std::byte> image, const int32_t registers, const int32_t local_memory)
      : image_(image), registers_(registers), local_memory_(local_memory) {}

  std::vector<std::byte> apply() && {
    const auto header = image_.load<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachineCuda) {
      refuse("its ELF header is another");
    }
    if (header.e_shentsize != sizeof(Elf64_Shdr)) refuse("its section headers have another size");
    const auto names = image_.load<Elf64_Shdr>(place_of(header, header.e_shstrndx));
    for (uint16_t index = 0; index < header.e_shnum; ++index) {
      const uint64_t place = place_of(header, index);
      const auto section = image_.load<Elf64_Shdr>(place);
      section_found(image_.text(names.sh_offset + section.sh_name), place, section);
    }
    if (counts_ == 0) refuse("no register count in .nv.info");
    return std::move(image_).release();
  }

 private:
  uint64_t place_of(const Elf64_Ehdr& header, const uint16_t index) const {
    image_.check(header.e_shoff, 0);
    return header.e_shoff + uint64_t{index} * sizeof(Elf64_Shdr);
  }

  void section_found(const std::string_view name, const uint64_t place, Elf64_Shdr section) {
    // From compute capability 10.0 on everything is there twice, once for the later finalizer.
    if (name == ".nv.info" || name == ".nv.merc.nv.info") {
      patch_attributes(section.sh_offset, section.sh_size);
    } else if (name.starts_with(".text.") && section.sh_info >> kRegisterShift != 0) {
      constexpr uint32_t symbol_mask = (1u << kRegisterShift) - 1;
      section.sh_info =
          (section.sh_info & symbol_mask) | (static_cast<uint32_t>(registers_) << kRegisterShift);
      image_.store(place, section);
    }
  }

  void patch_attributes(uint64_t offset, const uint64_t size) {
    image_.check(offset, size);
    const uint64_t end = offset + size;
    while (offset < end) {
      const auto attribute = image_.load<Attribute>(offset);
      offset += sizeof(Attribute);
      if (attribute.format != kSized) continue;
      if (attribute.size_or_value > end - offset) refuse("an attribute of .nv.info is cut short");
      if (attribute.size_or_value == sizeof(Property)) patch_property(attribute.kind, offset);
      offset += attribute.size_or_value;
    }
  }

  void patch_property(const uint8_t kind, const uint64_t offset) {
    auto property = image_.load<Property>(offset);
    if (kind == kRegisterCount) {
      check_registers(property.value);
      property.value = static_cast<uint32_t>(registers_);
      ++counts_;
    } else if (kind == kFrameSize || kind == kMinimumStackSize) {
      property.value = static_cast<uint32_t>(local_memory_);
    }
    image_.store(offset, property);
  }

  void check_registers(const uint32_t used) const {
    if (registers_ < static_cast<int32_t>(used) || registers_ > kMostRegisters) {
      throw std::invalid_argument("Launch.registers: " + std::to_string(registers_) +
                                  " is outside " + std::to_string(used) + ".." +
                                  std::to_string(kMostRegisters) +
                                  " (the probe kernel itself needs " + std::to_string(used) + ")");
    }
  }

  Image image_;
  const int32_t registers_;
  const int32_t local_memory_;
  int counts_ = 0;
};

}  // namespace

std::vector<std::byte> patch(const std::span<const std::byte> image, const int32_t registers,
                             const int32_t local_memory) {
  if (local_memory < 0) {
    throw std::invalid_argument("Launch.local_memory: " + std::to_string(local_memory) +
                                " is less than 0");
  }
  return Patch(image, registers, local_memory).apply();
}

}  // namespace tbsched::cuda
