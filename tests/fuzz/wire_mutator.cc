// The tree of fields, and its mutations.
#include "tests/fuzz/wire_mutator.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace oncilla::fuzz {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
constexpr int kMaxDepth = 16;
constexpr uint64_t kMaxNumber = 100'000;  // a larger field number says that this is no message

struct Field {
  uint64_t number = 1;
  uint32_t type = kVarint;
  uint64_t value = 0;   // of numbers
  std::string bytes;    // of kBytes that are no message
  bool nested = false;  // kBytes that are one
  std::vector<Field> fields;
};
using Fields = std::vector<Field>;

bool TakeVarint(std::string_view& in, uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool TakeFixed(std::string_view& in, size_t count, uint64_t* value) {
  if (in.size() < count) return false;
  *value = 0;
  std::memcpy(value, in.data(), count);
  in.remove_prefix(count);
  return true;
}

std::optional<Fields> Parse(std::string_view in, int depth) {
  Fields out;
  while (!in.empty()) {
    uint64_t tag = 0;
    if (!TakeVarint(in, &tag) || tag >> 3 == 0 || tag >> 3 > kMaxNumber) return std::nullopt;
    Field field;
    field.number = tag >> 3;
    field.type = tag & 7;
    switch (field.type) {
      case kVarint:
        if (!TakeVarint(in, &field.value)) return std::nullopt;
        break;
      case kFixed64:
        if (!TakeFixed(in, 8, &field.value)) return std::nullopt;
        break;
      case kFixed32:
        if (!TakeFixed(in, 4, &field.value)) return std::nullopt;
        break;
      case kBytes: {
        uint64_t size = 0;
        if (!TakeVarint(in, &size) || size > in.size()) return std::nullopt;
        field.bytes = in.substr(0, size);
        in.remove_prefix(size);
        if (depth == 0 || field.bytes.empty()) break;
        if (auto fields = Parse(field.bytes, depth - 1)) {
          field.fields = *std::move(fields);
          field.nested = true;
          field.bytes.clear();
        }
        break;
      }
      default:
        return std::nullopt;
    }
    out.push_back(std::move(field));
  }
  return out;
}

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

std::string Write(const Fields& fields) {
  std::string out;
  for (const Field& field : fields) {
    PutVarint(out, field.number << 3 | field.type);
    if (field.type == kVarint) {
      PutVarint(out, field.value);
    } else if (field.type == kBytes) {
      const std::string inner = field.nested ? Write(field.fields) : field.bytes;
      PutVarint(out, inner.size());
      out += inner;
    } else {
      out.append(reinterpret_cast<const char*>(&field.value), field.type == kFixed64 ? 8 : 4);
    }
  }
  return out;
}

// A field by the list that contains it, since lists may change meanwhile.
struct Place {
  Fields* list;
  size_t index;
  Field& field() const { return (*list)[index]; }
};

void AllPlaces(Fields& fields, std::vector<Place>& out) {
  for (size_t i = 0; i < fields.size(); ++i) {
    out.push_back({&fields, i});
    AllPlaces(fields[i].fields, out);
  }
}

class Mutator {
 public:
  Mutator(Fields& root, unsigned seed) : root_(root), random_(seed) {}

  void Step() {
    std::vector<Place> places;
    AllPlaces(root_, places);
    if (places.empty()) return;
    const Place place = Pick(places);
    const Field other = Pick(places).field();
    Fields& list = *place.list;
    const auto at = list.begin() + static_cast<long>(place.index);
    switch (random_() % 8) {
      case 0:
        list.erase(at);
        return;
      case 1:
        list.insert(at, Field(*at));
        return;
      case 2:
        list.insert(at, other);
        return;
      case 3: {  // with a sibling
        std::swap(*at, list[random_() % list.size()]);
        return;
      }
      case 4: {  // what another field of that number holds, a type for a type, a name for a name
        std::vector<Place> alike;
        for (const Place& p : places) {
          if (p.field().number == at->number && p.field().type == at->type) alike.push_back(p);
        }
        const Field copy = Pick(alike).field();
        *at = copy;
        return;
      }
      default:
        Change(*at);
    }
  }

 private:
  template <class T>
  const T& Pick(const std::vector<T>& list) {
    return list[random_() % list.size()];
  }

  void Change(Field& field) {
    if (random_() % 16 == 0) {
      field.number = random_() % 40 + 1;
      return;
    }
    if (field.type != kBytes) {
      field.value = Number(field.value);
    } else if (!field.nested) {
      const size_t size = field.bytes.size();
      field.bytes.resize(size + 16);
      field.bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(field.bytes.data()), size,
                                          field.bytes.size()));
    } else if (random_() % 4 == 0) {
      field.fields.clear();
    }
  }

  uint64_t Number(uint64_t old) {
    constexpr uint64_t kOdd[] = {0,          1,          2,       ~0ull,      ~1ull,
                                 0x7fffffff, 0x80000000, 1 << 16, 0xffffffff, 1ull << 32,
                                 1ull << 40, 1ull << 62, 8,       ~0ull >> 1, 1ull << 63,
                                 3,          9,          64,      0x7f800000, 0x7fc00000};
    switch (random_() % 4) {
      case 0:
        return old + 1;
      case 1:
        return old - 1;
      case 2:
        return random_() % 33;
      default:
        return kOdd[random_() % std::size(kOdd)];
    }
  }

  Fields& root_;
  std::minstd_rand random_;
};

}  // namespace

std::string MutateMessage(std::string_view message, size_t max_bytes, unsigned seed) {
  auto fields = Parse(message, kMaxDepth);
  if (fields) {
    Mutator mutator(*fields, seed);
    for (unsigned steps = seed % 3 + 1; steps > 0; --steps) mutator.Step();
    std::string out = Write(*fields);
    if (out.size() <= max_bytes) return out;
  }
  std::string out(message);
  out.resize(max_bytes);
  out.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(out.data()), message.size(), max_bytes));
  return out;
}

std::string CrossMessages(std::string_view into, std::string_view from, size_t max_bytes,
                          unsigned seed) {
  auto target = Parse(into, kMaxDepth);
  auto source = Parse(from, kMaxDepth);
  if (target && source) {
    std::minstd_rand random(seed);
    std::vector<Place> places, pieces;
    AllPlaces(*target, places);
    AllPlaces(*source, pieces);
    if (!places.empty() && !pieces.empty()) {
      const Place& at = places[random() % places.size()];
      at.list->insert(at.list->begin() + static_cast<long>(at.index),
                      pieces[random() % pieces.size()].field());
      std::string out = Write(*target);
      if (out.size() <= max_bytes) return out;
    }
  }
  return std::string(into.substr(0, max_bytes));
}

}  // namespace oncilla::fuzz
