// Ops on lists: host functions. Elements that are cut from a tensor are views into it where they
// are aligned, so that cutting copies nothing. Elements of types that share bytes are copied one by
// one where a part does not begin at a whole byte.
#include "engine/ops/array/list.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "engine/base/work_limits.h"
#include "engine/ops/rules.h"
#include "engine/tensor/numbers.h"
#include "engine/tensor/tensor_list.h"

namespace oncilla::cpu {
namespace {

using Tensors = std::vector<Tensor>;

Result<int64_t> ReadScalar(const Tensor& t, std::string_view what) {
  ONCILLA_ASSIGN(const auto ints, ToInt64s(t));
  if (ints.size() != 1) return InvalidArgument(what, " must be one number, not ", t.desc());
  return ints[0];
}

Result<int64_t> ReadLength(const Tensor& t) {
  ONCILLA_ASSIGN(const int64_t length, ReadScalar(t, "length"));
  if (length < 0 || length > TensorList::kMaxSize) {
    return InvalidArgument("a list cannot have ", length, " elements");
  }
  return length;
}

// The shape of elements as far as it is known, from the list and from input `at` if there is one.
Result<PartialShape> ElementShape(const TensorList& list, std::span<const Tensor> in, size_t at) {
  if (in.size() <= at || !in[at].valid() || in[at].shape().rank() == 0) return list.element();
  ONCILLA_ASSIGN(const auto sizes, ToInt64s(in[at]));
  std::vector<Dim> dims;
  for (int64_t size : sizes) dims.push_back(size < 0 ? Dim() : Dim(size));
  return MergeShapes(list.element(), PartialShape(std::move(dims)));
}

// Written elements agree on their shape, so an element that was never written has the same shape.
PartialShape KnownFromOthers(const TensorList& list, PartialShape shape) {
  for (int64_t i = 0; i < list.size() && !shape.known(); ++i) {
    if (list.at(i).valid()) shape = list.at(i).shape();
  }
  return shape;
}

Result<Tensor> ElementAt(const TensorList& list, int64_t i, const PartialShape& shape, bool zeros) {
  if (i < 0 || i >= list.size()) {
    return InvalidArgument("index ", i, " is outside a list of ", list.size(), " elements");
  }
  const Tensor& element = list.at(i);
  if (element.valid()) {
    if (!shape.Accepts(element.shape())) {
      return InvalidArgument("element ", i, " is ", element.desc(), ", not of shape ", shape);
    }
    return element;
  }
  if (!zeros) {
    return Error(Code::kFailedPrecondition, "element ", i, " was never written");
  }
  if (!shape.known()) {
    return InvalidArgument("element ", i, " was never written, and its shape ", shape,
                           " is not wholly known");
  }
  return Tensor::Allocate({list.dtype(), shape.ToShape()});
}

// Copies n elements from place `first` of a tensor to place `at` of a result that is written in
// order. Not for strings.
void CopyElements(const Tensor& from, int64_t first, int64_t n, Tensor& to, int64_t at) {
  if (n == 0) return;
  if (IsPacked(from.dtype())) {
    return CopyPacked(from.dtype(), from.bytes().data(), first, n, to.mutable_bytes().data(), at);
  }
  const int64_t each = BytesOf(from.dtype());
  std::memcpy(to.mutable_bytes().data() + at * each, from.bytes().data() + first * each,
              static_cast<size_t>(n * each));
}

// Rows [begin, begin + rows) of x along axis 0, reshaped.
Result<Tensor> Cut(const Tensor& x, int64_t begin, int64_t rows, Shape shape) {
  const int64_t row = x.shape().Product(1, x.shape().rank());
  if (x.dtype() == DType::kString) {
    const auto first = x.strings().begin() + begin * row;
    return Tensor::Strings(std::move(shape), {first, first + rows * row});
  }
  if (IsPacked(x.dtype())) {
    ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({x.dtype(), std::move(shape)}));
    CopyElements(x, begin * row, rows * row, out, 0);
    return out;
  }
  const auto bytes = x.bytes().subspan(static_cast<size_t>(begin * row * BytesOf(x.dtype())),
                                       static_cast<size_t>(rows * row * BytesOf(x.dtype())));
  Tensor view = Tensor::View({x.dtype(), std::move(shape)}, bytes, std::make_shared<Tensor>(x));
  return view.aligned() ? view : Tensor::Copy(view.desc(), bytes);
}

// Writes tensors one after the other into one result.
class Joiner {
 public:
  static Result<Joiner> Make(TensorDesc desc) {
    ONCILLA_ASSIGN(Tensor out, Tensor::Allocate(desc));
    return Joiner(std::move(out));
  }
  Status Add(const Tensor& part) { return AddSome(part, 0, part.elements()); }
  // Appends elements [begin, begin + count) of the part, in memory order.
  Status AddSome(const Tensor& part, int64_t begin, int64_t count) {
    if (part.dtype() == DType::kString) {
      const auto first = part.strings().begin() + begin;
      for (auto s = first; s != first + count; ++s) {
        ONCILLA_TRY(growth_.Add(std::ssize(*s) + static_cast<int64_t>(sizeof(*s))));
      }
      strings_.insert(strings_.end(), first, first + count);
    } else {
      CopyElements(part, begin, count, out_, at_);
      at_ += count;
    }
    return WorkLook::Ask();
  }
  Tensor Finish() {
    if (out_.dtype() != DType::kString) return std::move(out_);
    growth_.Clear();
    return Tensor::Strings(out_.shape(), std::move(strings_));
  }

 private:
  explicit Joiner(Tensor out) : out_(std::move(out)) {}
  Tensor out_;
  int64_t at_ = 0;  // elements written
  std::vector<std::string> strings_;
  Growth growth_;
};

Result<Tensor> Stack(const TensorList& list, std::span<const int64_t> indices, PartialShape shape) {
  shape = KnownFromOthers(list, std::move(shape));
  if (!shape.known()) {
    return InvalidArgument("the shape ", shape, " of the elements is not wholly known");
  }
  Shape stacked = shape.ToShape();
  stacked.Insert(0, static_cast<int64_t>(indices.size()));
  ONCILLA_ASSIGN(Joiner joiner, Joiner::Make({list.dtype(), stacked}));
  for (int64_t i : indices) {
    ONCILLA_ASSIGN(const Tensor element, ElementAt(list, i, shape, /*zeros=*/true));
    ONCILLA_TRY(joiner.Add(element));
  }
  return joiner.Finish();
}

Result<Tensors> ListReserve(const ListReserveAttrs& attrs, const NodeView&,
                            std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const Fact type, ParseFact(attrs.type));
  ONCILLA_ASSIGN(const int64_t length, ReadLength(in[0]));
  TensorList list(type.dtype, type.shape);
  list.Resize(length);
  return Tensors{Tensor::OfList(std::move(list))};
}

Result<Tensors> ListFromTensor(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const Tensor& x = in[0];
  if (x.shape().rank() == 0) return InvalidArgument("x has no axis to cut");
  if (x.shape()[0] > TensorList::kMaxSize) {
    return InvalidArgument("a list cannot have ", x.shape()[0], " elements");
  }
  Shape element = x.shape();
  element.Erase(0);
  TensorList list(x.dtype(), element);
  for (int64_t i = 0; i < x.shape()[0]; ++i) {
    ONCILLA_ASSIGN(Tensor part, Cut(x, i, 1, element));
    list.Push(std::move(part));
  }
  return Tensors{Tensor::OfList(std::move(list))};
}

Result<Tensors> ListGet(const ListGetAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const TensorList& list = in[0].list();
  ONCILLA_ASSIGN(int64_t index, ReadScalar(in[1], "index"));
  if (attrs.from_end && index < 0 && index >= -list.size()) index += list.size();
  ONCILLA_ASSIGN(PartialShape shape, ElementShape(list, in, 2));
  if (index >= 0 && index < list.size() && !list.at(index).valid()) {
    shape = KnownFromOthers(list, std::move(shape));
  }
  ONCILLA_ASSIGN(Tensor element, ElementAt(list, index, shape, attrs.zeros));
  return Tensors{std::move(element)};
}

// Puts x into the list, which grows if `grow` is set.
Status Put(TensorList& list, int64_t index, bool grow, Tensor x) {
  if (index < 0 || index >= TensorList::kMaxSize || (!grow && index >= list.size())) {
    return InvalidArgument("index ", index, " is outside a list of ", list.size(), " elements");
  }
  if (!list.element().Accepts(x.shape())) {
    return InvalidArgument("a list of elements of shape ", list.element(), " cannot hold a ",
                           x.desc());
  }
  if (index >= list.size()) list.Resize(index + 1);
  list.Set(index, std::move(x));
  return Status();
}

Result<Tensors> ListSet(const ListSetAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  TensorList list = in[0].list();
  ONCILLA_ASSIGN(const int64_t index, ReadScalar(in[1], "index"));
  ONCILLA_TRY(Put(list, index, attrs.grow, in[2]));
  return Tensors{Tensor::OfList(std::move(list))};
}

Result<Tensors> ListScatter(const ListScatterAttrs& attrs, const NodeView&,
                            std::span<const Tensor> in) {
  TensorList list = in[0].list();
  const Tensor& x = in[2];
  ONCILLA_ASSIGN(const auto indices, ToInt64s(in[1]));
  if (x.shape().rank() == 0 || x.shape()[0] != std::ssize(indices)) {
    return InvalidArgument(indices.size(), " indices for ", x.desc());
  }
  Shape element = x.shape();
  element.Erase(0);
  for (size_t i = 0; i < indices.size(); ++i) {
    ONCILLA_ASSIGN(Tensor part, Cut(x, static_cast<int64_t>(i), 1, element));
    ONCILLA_TRY(Put(list, indices[i], attrs.grow, std::move(part)));
  }
  return Tensors{Tensor::OfList(std::move(list))};
}

Result<Tensors> ListPush(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  TensorList list = in[0].list();
  ONCILLA_TRY(Put(list, list.size(), /*grow=*/true, in[1]));
  return Tensors{Tensor::OfList(std::move(list))};
}

Result<Tensors> ListExtend(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const TensorList& more = in[1].list();
  TensorList list = in[0].list();
  if (list.dtype() != more.dtype()) {
    return InvalidArgument("a list of ", list.dtype(), " cannot be extended by one of ",
                           more.dtype());
  }
  if (list.size() + more.size() > TensorList::kMaxSize) {
    return InvalidArgument("a list cannot have ", list.size() + more.size(), " elements");
  }
  list.set_element(CommonShape(list.element(), more.element()));
  WorkLook look;
  for (int64_t i = 0; i < more.size(); ++i) {
    ONCILLA_TRY(look.Go(1));
    list.Push(more.at(i));
  }
  return Tensors{Tensor::OfList(std::move(list))};
}

Result<Tensors> ListPop(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  TensorList list = in[0].list();
  if (list.size() == 0) return InvalidArgument("the list is empty");
  ONCILLA_ASSIGN(const PartialShape shape, ElementShape(list, in, 1));
  ONCILLA_ASSIGN(Tensor last, ElementAt(list, list.size() - 1, shape, /*zeros=*/true));
  list.Resize(list.size() - 1);
  return Tensors{Tensor::OfList(std::move(list)), std::move(last)};
}

Result<Tensors> ListLength(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const auto length = static_cast<int32_t>(in[0].list().size());
  return Tensors{Tensor::Of<int32_t>(DType::kI32, {}, {&length, 1})};
}

Result<Tensors> ListStack(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const TensorList& list = in[0].list();
  ONCILLA_ASSIGN(PartialShape shape, ElementShape(list, in, 1));
  std::vector<int64_t> all(static_cast<size_t>(list.size()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  ONCILLA_ASSIGN(Tensor out, Stack(list, all, std::move(shape)));
  return Tensors{std::move(out)};
}

Result<Tensors> ListGather(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(PartialShape shape, ElementShape(in[0].list(), in, 2));
  ONCILLA_ASSIGN(const auto indices, ToInt64s(in[1]));
  ONCILLA_ASSIGN(Tensor out, Stack(in[0].list(), indices, std::move(shape)));
  return Tensors{std::move(out)};
}

Result<Tensors> ListConcat(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const TensorList& list = in[0].list();
  ONCILLA_ASSIGN(const PartialShape shape, ElementShape(list, in, 1));
  const PartialShape known = KnownFromOthers(list, shape);
  if (!known.ranked() || known.rank() == 0) {
    return InvalidArgument("elements of shape ", known, " cannot be joined along an axis");
  }
  std::vector<Tensor> parts;
  std::vector<int64_t> lengths;
  Shape joined;
  for (int64_t i = 0; i < list.size(); ++i) {
    ONCILLA_ASSIGN(Tensor part, ElementAt(list, i, list.at(i).valid() ? shape : known, true));
    if (i == 0) {
      joined = part.shape();
    } else {
      Shape expected = part.shape();
      expected[0] = joined[0];
      if (part.shape().rank() != joined.rank() || expected != joined) {
        return InvalidArgument("elements ", parts[0].desc(), " and ", part.desc(),
                               " differ in more than their first axis");
      }
      joined[0] = SaturatingAdd(joined[0], part.shape()[0]);
    }
    lengths.push_back(part.shape()[0]);
    parts.push_back(std::move(part));
  }
  if (parts.empty()) {
    for (int axis = 0; axis < known.rank(); ++axis) {
      if (axis > 0 && !known[axis].known()) {
        return InvalidArgument("the list is empty and the shape ", known, " not wholly known");
      }
      joined.push_back(axis == 0 ? 0 : known[axis].size);
    }
  }
  ONCILLA_ASSIGN(Joiner joiner, Joiner::Make({list.dtype(), joined}));
  for (const Tensor& part : parts) ONCILLA_TRY(joiner.Add(part));
  return Tensors{joiner.Finish(), Tensor::Int64s(lengths)};
}

// Elements [begin, begin + count) of x along an axis.
Result<Tensor> CutAlong(const Tensor& x, int axis, int64_t begin, int64_t count) {
  Shape shape = x.shape();
  shape[axis] = count;
  if (axis == 0) return Cut(x, begin, count, std::move(shape));
  const int64_t before = x.shape().Product(0, axis);
  const int64_t row = x.shape().Product(axis + 1, x.shape().rank());
  const int64_t step = x.shape()[axis] * row;
  if (x.dtype() == DType::kString) {
    std::vector<std::string> strings;
    for (int64_t i = 0; i < before; ++i) {
      const auto first = x.strings().begin() + i * step + begin * row;
      strings.insert(strings.end(), first, first + count * row);
    }
    return Tensor::Strings(std::move(shape), std::move(strings));
  }
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({x.dtype(), std::move(shape)}));
  for (int64_t i = 0; i < before; ++i) {
    CopyElements(x, i * step + begin * row, count * row, out, i * count * row);
  }
  return out;
}

Result<Tensors> ListSplit(const ListSplitAttrs& attrs, const NodeView&,
                          std::span<const Tensor> in) {
  const Tensor& x = in[0];
  ONCILLA_ASSIGN(const auto lengths, ToInt64s(in[1]));
  if (x.shape().rank() == 0) return InvalidArgument("x has no axis to cut");
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, x.shape().rank()));
  const int64_t size = x.shape()[axis];
  if (std::ssize(lengths) > TensorList::kMaxSize) {
    return InvalidArgument("a list cannot have ", lengths.size(), " elements");
  }
  PartialShape element(x.shape());
  element[axis] = Dim();
  TensorList list(x.dtype(), element);
  int64_t at = 0;
  for (int64_t length : lengths) {
    if (length < 0 || length > size - at) {
      return InvalidArgument("lengths do not add up to the ", size, " rows of x");
    }
    ONCILLA_ASSIGN(Tensor part, CutAlong(x, axis, at, length));
    list.Push(std::move(part));
    at += length;
    ONCILLA_TRY(WorkLook::Ask());
  }
  if (at != size) {
    return InvalidArgument("lengths do not add up to the ", size, " rows of x");
  }
  return Tensors{Tensor::OfList(std::move(list))};
}

// Reads a position in [-size, size + behind) and counts it from the front.
Result<int64_t> ReadPosition(const Tensor& t, const TensorList& list, int64_t behind) {
  ONCILLA_ASSIGN(const int64_t position, ReadScalar(t, "position"));
  if (position < -list.size() || position >= list.size() + behind) {
    return InvalidArgument("position ", position, " is outside a list of ", list.size(),
                           " elements");
  }
  return position < 0 ? position + list.size() : position;
}

Result<Tensors> ListInsert(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  TensorList list = in[0].list();
  int64_t position = list.size();
  if (in.size() > 2 && in[2].valid()) {
    ONCILLA_ASSIGN(position, ReadPosition(in[2], list, /*behind=*/1));
  }
  if (list.size() >= TensorList::kMaxSize) {
    return InvalidArgument("a list cannot have ", list.size() + 1, " elements");
  }
  list.set_element(CommonShape(list.element(), PartialShape(in[1].shape())));
  list.Push(in[1]);
  for (int64_t i = list.size() - 1; i > position; --i) {
    list.Set(i, in[0].list().at(i - 1));
    ONCILLA_TRY(WorkLook::Ask());
  }
  if (position + 1 < list.size()) list.Set(position, in[1]);
  return Tensors{Tensor::OfList(std::move(list))};
}

Result<Tensors> ListErase(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  TensorList list = in[0].list();
  if (list.size() == 0) return InvalidArgument("the list is empty");
  int64_t position = list.size() - 1;
  if (in.size() > 1 && in[1].valid()) {
    ONCILLA_ASSIGN(position, ReadPosition(in[1], list, /*behind=*/0));
  }
  for (int64_t i = position; i + 1 < list.size(); ++i) {
    list.Set(i, in[0].list().at(i + 1));
    ONCILLA_TRY(WorkLook::Ask());
  }
  list.Resize(list.size() - 1);
  return Tensors{Tensor::OfList(std::move(list))};
}

// The shape of the elements of an empty list; unknown sizes count as 0.
Result<Shape> ShapeOfNone(const TensorList& list, std::span<const Tensor> in) {
  const PartialShape& element = list.element();
  std::vector<int64_t> stated;
  if (in.size() > 1 && in[1].valid()) {
    ONCILLA_ASSIGN(stated, ToInt64s(in[1]));
  } else if (!element.ranked()) {
    return InvalidArgument("the list is empty, and the rank of its elements is not known");
  }
  const auto rank = element.ranked() ? static_cast<size_t>(element.rank()) : stated.size();
  if (rank > kMaxRank) return Unsupported("elements of rank ", rank);
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    const bool known = element.ranked() && element[static_cast<int>(i)].known();
    const int64_t otherwise = stated.size() == rank ? std::max<int64_t>(stated[i], 0) : 0;
    shape.push_back(known ? element[static_cast<int>(i)].size : otherwise);
  }
  return shape;
}

// Joins an empty list: a tensor without elements.
Result<Tensor> JoinNone(const ListJoinAttrs& attrs, const TensorList& list,
                        std::span<const Tensor> in) {
  if (!attrs.may_be_empty) return InvalidArgument("the list is empty");
  ONCILLA_ASSIGN(Shape shape, ShapeOfNone(list, in));
  const int rank = shape.rank() + (attrs.stack ? 1 : 0);
  if (rank == 0) return InvalidArgument("scalars cannot be joined along an axis");
  if (rank > kMaxRank) return Unsupported("a result of rank ", rank);
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, rank));
  if (attrs.stack) {
    shape.Insert(axis, 0);
  } else {
    shape[axis] = 0;
  }
  return Tensor::Allocate({list.dtype(), std::move(shape)});
}

// Checks that the elements fit together. Returns the sum of their sizes along the axis or, for
// stacks, their number.
Result<int64_t> JoinedSize(const ListJoinAttrs& attrs, const TensorList& list, int axis) {
  int64_t sum = 0;
  for (int64_t i = 0; i < list.size(); ++i) {
    const Tensor& part = list.at(i);
    if (!part.valid() || part.is_list()) {
      return Error(Code::kFailedPrecondition, "element ", i, " was never written");
    }
    Shape expected = list.at(0).shape();
    if (!attrs.stack && part.shape().rank() == expected.rank()) expected[axis] = part.shape()[axis];
    if (part.shape() != expected) {
      return InvalidArgument("elements ", list.at(0).desc(), " and ", part.desc(),
                             " do not fit together along axis ", axis);
    }
    sum = SaturatingAdd(sum, attrs.stack ? 1 : part.shape()[axis]);
  }
  return sum;
}

Result<Tensors> ListJoin(const ListJoinAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const TensorList& list = in[0].list();
  if (list.size() == 0) {
    ONCILLA_ASSIGN(Tensor none, JoinNone(attrs, list, in));
    return Tensors{std::move(none)};
  }
  if (!list.at(0).valid()) {
    return Error(Code::kFailedPrecondition, "element 0 was never written");
  }
  Shape joined = list.at(0).shape();
  const int rank = joined.rank() + (attrs.stack ? 1 : 0);
  if (rank == 0) return InvalidArgument("scalars cannot be joined along an axis");
  if (rank > kMaxRank) return Unsupported("a result of rank ", rank);
  ONCILLA_ASSIGN(const int axis, NormalizeAxis(attrs.axis, rank));
  ONCILLA_ASSIGN(const int64_t size, JoinedSize(attrs, list, axis));
  if (attrs.stack) {
    joined.Insert(axis, size);
  } else {
    joined[axis] = size;
  }
  ONCILLA_ASSIGN(Joiner joiner, Joiner::Make({list.dtype(), joined}));
  const int64_t before = joined.elements() == 0 ? 0 : joined.Product(0, axis);
  for (int64_t i = 0; i < before; ++i) {
    for (int64_t k = 0; k < list.size(); ++k) {
      const Tensor& part = list.at(k);
      const int64_t count = part.elements() / before;
      ONCILLA_TRY(joiner.AddSome(part, i * count, count));
    }
  }
  return Tensors{joiner.Finish()};
}

Result<Tensors> ListResize(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const int64_t length, ReadLength(in[1]));
  TensorList list = in[0].list();
  list.Resize(length);
  return Tensors{Tensor::OfList(std::move(list))};
}

// Lists hold elements of every type in their stored form.
template <auto F>
constexpr KernelRow ListRow(std::string_view op) {
  KernelRow row = HostRow<F>(op, kStorable);
  row.stored = true;
  return row;
}

const KernelRow kRows[] = {
    ListRow<ListConcat>("ListConcat"), ListRow<ListErase>("ListErase"),
    ListRow<ListExtend>("ListExtend"), ListRow<ListFromTensor>("ListFromTensor"),
    ListRow<ListGather>("ListGather"), ListRow<ListGet>("ListGet"),
    ListRow<ListInsert>("ListInsert"), ListRow<ListJoin>("ListJoin"),
    ListRow<ListLength>("ListLength"), ListRow<ListPop>("ListPop"),
    ListRow<ListPush>("ListPush"),     ListRow<ListReserve>("ListReserve"),
    ListRow<ListResize>("ListResize"), ListRow<ListScatter>("ListScatter"),
    ListRow<ListSet>("ListSet"),       ListRow<ListSplit>("ListSplit"),
    ListRow<ListStack>("ListStack"),
};

}  // namespace

std::span<const KernelRow> ListKernels() { return kRows; }

}  // namespace oncilla::cpu
