// TensorFlow's two model files as ModelSources: a SavedModel folder, and a frozen GraphDef.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/base/file.h"
#include "engine/import/model_source.h"
#include "engine/import/tf/freeze.h"

namespace oncilla {

// What TensorFlow's models offer beyond other formats.
class TfSource : public ModelSource {
 public:
  // With TensorFlow's messages.
  Status CheckFeed(std::string_view name, const Fact& wanted, const Tensor& tensor) const override;
  Status NotFed(std::string_view name, const Fact& wanted) const override;
  bool has_tf_contents() const override { return true; }

  // A GraphDef for the request, with the variables as constants; see freeze.h. It is a view into
  // the source, which must outlive it. Inputs are all of the signature unless feeds are named;
  // `shapes` fixes sizes of some. InvalidArgument for one that contradicts the signature.
  using Shapes = std::vector<std::pair<std::string, Shape>>;
  virtual Result<TfFrozenGraph> Freeze(const ImportRequest& asked, const Shapes& shapes) = 0;
};

// `file_name`: the graph's file in the folder, if not the usual one.
Result<std::unique_ptr<ModelSource>> OpenSavedModel(const std::string& folder,
                                                    std::span<const std::string> tags,
                                                    const std::string& file_name = {});
// Inputs are the placeholders, outputs the tensors that no node reads, both as "node:0". Feeds and
// fetches may name any tensor, and omit ":0".
Result<std::unique_ptr<ModelSource>> OpenGraphDef(std::shared_ptr<const MappedFile> file);
// The same from its text form.
Result<std::unique_ptr<ModelSource>> OpenGraphDefText(std::shared_ptr<const MappedFile> file);

}  // namespace oncilla
