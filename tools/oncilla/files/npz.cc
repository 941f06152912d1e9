// Structures after PKWARE's APPNOTE 6.3.10: end of central directory (4.3.16), its ZIP64 form
// (4.3.14, 4.3.15), central file headers (4.3.12), local headers (4.3.7).
#include "tools/oncilla/files/npz.h"

#include <zlib.h>

#include <limits>

#include "engine/base/work_limits.h"
#include "tools/oncilla/files/npy.h"

namespace oncilla::tool {
namespace {

using Span = std::span<const std::byte>;

struct Member {
  std::string name;
  uint16_t method = 0, flags = 0;
  uint32_t crc = 0;
  uint64_t packed_bytes = 0, bytes = 0, header_offset = 0;
};

uint64_t Number(Span bytes, size_t at, int width) {
  uint64_t value = 0;
  for (int i = 0; i < width; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

Status Damaged(std::string_view what) {
  return WithStage(DataLoss("the archive is damaged: ", what), Stage::kFile);
}

struct Directory {
  uint64_t offset = 0, bytes = 0, members = 0;
};

Result<Directory> FindDirectory(Span file) {
  constexpr size_t kEndBytes = 22, kMaxComment = 65535;
  constexpr uint64_t kEnd = 0x06054b50, kLocator64 = 0x07064b50, kEnd64 = 0x06064b50;
  if (file.size() < kEndBytes) return Damaged("it is too short");
  const size_t last = file.size() - kEndBytes;
  for (size_t back = 0; back <= std::min(last, kMaxComment); ++back) {
    const size_t at = last - back;
    if (Number(file, at, 4) != kEnd || Number(file, at + 20, 2) != back) continue;
    Directory directory{Number(file, at + 16, 4), Number(file, at + 12, 4),
                        Number(file, at + 10, 2)};
    if (at >= 20 && Number(file, at - 20, 4) == kLocator64) {
      const uint64_t end64 = Number(file, at - 20 + 8, 8);
      if (end64 > file.size() || file.size() - end64 < 56 || Number(file, end64, 4) != kEnd64) {
        return Damaged("its ZIP64 directory is not at the offset that its locator gives");
      }
      directory = {Number(file, end64 + 48, 8), Number(file, end64 + 40, 8),
                   Number(file, end64 + 32, 8)};
    }
    if (directory.offset > at || directory.bytes > at - directory.offset) {
      return Damaged("its directory lies outside the file");
    }
    return directory;
  }
  return Damaged("it has no directory (a truncated file?)");
}

// ZIP64 sizes are in an extra field of id 1, in this order, and only those whose usual field is all
// ones.
Status ReadZip64(Span extra, Member& member) {
  while (extra.size() >= 4) {
    const uint64_t id = Number(extra, 0, 2), length = Number(extra, 2, 2);
    if (length > extra.size() - 4) return Damaged("an extra field is too long");
    if (id == 1) {
      Span rest = extra.subspan(4, length);
      for (uint64_t* value : {&member.bytes, &member.packed_bytes, &member.header_offset}) {
        if (*value != 0xffffffffu) continue;
        if (rest.size() < 8) return Damaged("a ZIP64 field is too short");
        *value = Number(rest, 0, 8);
        rest = rest.subspan(8);
      }
    }
    extra = extra.subspan(4 + length);
  }
  return {};
}

Result<std::vector<Member>> ReadDirectory(Span file) {
  constexpr size_t kHeaderBytes = 46;
  ONCILLA_ASSIGN(const Directory directory, FindDirectory(file));
  Span rest = file.subspan(directory.offset, directory.bytes);
  std::vector<Member> members;
  while (!rest.empty()) {
    if (rest.size() < kHeaderBytes || Number(rest, 0, 4) != 0x02014b50) {
      return Damaged("a directory entry lacks its signature");
    }
    const size_t name = Number(rest, 28, 2), extra = Number(rest, 30, 2),
                 comment = Number(rest, 32, 2);
    if (rest.size() - kHeaderBytes < name + extra + comment) {
      return Damaged("a directory entry is cut short");
    }
    Member member;
    member.flags = static_cast<uint16_t>(Number(rest, 8, 2));
    member.method = static_cast<uint16_t>(Number(rest, 10, 2));
    member.crc = static_cast<uint32_t>(Number(rest, 16, 4));
    member.packed_bytes = Number(rest, 20, 4);
    member.bytes = Number(rest, 24, 4);
    member.header_offset = Number(rest, 42, 4);
    member.name.assign(reinterpret_cast<const char*>(rest.data()) + kHeaderBytes, name);
    ONCILLA_TRY(ReadZip64(rest.subspan(kHeaderBytes + name, extra), member));
    if (member.name.ends_with(".npy")) member.name.resize(member.name.size() - 4);
    members.push_back(std::move(member));
    rest = rest.subspan(kHeaderBytes + name + extra + comment);
  }
  if (members.size() != directory.members) return Damaged("its directory miscounts its members");
  return members;
}

// The member's bytes in the file, still compressed.
Result<Span> Packed(Span file, const Member& member) {
  constexpr size_t kLocalBytes = 30;
  if (member.header_offset > file.size() || file.size() - member.header_offset < kLocalBytes) {
    return Damaged("a member lies outside the file");
  }
  const Span local = file.subspan(member.header_offset);
  if (Number(local, 0, 4) != 0x04034b50) return Damaged("a member's header lacks its signature");
  const size_t skip = kLocalBytes + Number(local, 26, 2) + Number(local, 28, 2);
  if (skip > local.size() || member.packed_bytes > local.size() - skip) {
    return Damaged("a member lies outside the file");
  }
  return local.subspan(skip, member.packed_bytes);
}

Result<std::shared_ptr<HostVector<std::byte>>> Inflate(Span packed, const Member& member) {
  // Deflate compresses by at most about 1032 to 1.
  if (member.bytes / 1032 > packed.size() + 1) return Damaged("a member claims an impossible size");
  auto out = std::make_shared<HostVector<std::byte>>(member.bytes);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Exhausted("zlib has no memory");
  size_t read = 0, written = 0;
  int state = Z_OK;
  constexpr size_t kStep = std::numeric_limits<uInt>::max();
  while (state == Z_OK) {
    const size_t in = std::min(kStep, packed.size() - read);
    const size_t room = std::min(kStep, out->size() - written);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data())) +
                     read;  // zlib reads only
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out->data()) + written;
    stream.avail_out = static_cast<uInt>(room);
    state = inflate(&stream, Z_NO_FLUSH);
    const size_t took = in - stream.avail_in, gave = room - stream.avail_out;
    read += took;
    written += gave;
    if (took == 0 && gave == 0 && state == Z_OK) break;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || written != out->size()) {
    return Damaged("a member does not unpack to its size");
  }
  return out;
}

}  // namespace

Result<std::vector<std::string>> ListNpz(const MappedFile& file) {
  ONCILLA_ASSIGN(const std::vector<Member> members, ReadDirectory(file.bytes()));
  std::vector<std::string> names;
  for (const Member& member : members) names.push_back(member.name);
  return names;
}

Result<Tensor> ReadNpz(const std::shared_ptr<const MappedFile>& file, const std::string& key) {
  ONCILLA_ASSIGN(const std::vector<Member> members, ReadDirectory(file->bytes()));
  const Member* found = nullptr;
  std::string names;
  for (const Member& member : members) {
    names += (names.empty() ? "" : ", ") + member.name;
    if (member.name == key || (key.empty() && members.size() == 1)) found = &member;
  }
  if (!found) {
    if (key.empty()) return NotFound("say which array: FILE.npz:KEY, with KEY one of ", names);
    return NotFound("it has no array '", key, "'; it has: ", names.empty() ? "none" : names);
  }
  if (found->flags & 1) return Unsupported("the member '", found->name, "' is encrypted");
  ONCILLA_ASSIGN(Span bytes, Packed(file->bytes(), *found));
  std::shared_ptr<const void> owner = file;
  if (found->method == 8) {
    ONCILLA_ASSIGN(auto unpacked, Inflate(bytes, *found));
    bytes = *unpacked;
    owner = unpacked;
  } else if (found->method != 0) {
    return Unsupported("the member '", found->name, "' is packed by method ", found->method);
  } else if (found->packed_bytes != found->bytes) {
    return Damaged("a stored member has two sizes");
  }
  const uLong crc =
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<z_size_t>(bytes.size()));
  if (crc != found->crc) return Damaged("a member fails its checksum");
  Result<Tensor> tensor = ReadNpy(bytes, owner);
  if (!tensor.ok()) return In(tensor.status(), StrCat("array '", found->name, "'"));
  return tensor;
}

}  // namespace oncilla::tool
