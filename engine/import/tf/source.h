// TensorFlow's two model files as ModelSources: a SavedModel folder, and a frozen GraphDef.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "engine/base/file.h"
#include "engine/import/model_source.h"
#include "engine/import/tf/freeze.h"

namespace oncilla {

// What TensorFlow's models can do beyond others.
class TfSource : public ModelSource {
 public:
  // In TensorFlow's words.
  Status CheckFeed(std::string_view name, const Fact& wanted, const Tensor& tensor) const override;
  Status NotFed(std::string_view name, const Fact& wanted) const override;
  bool has_tf_contents() const override { return true; }

  // A GraphDef of what is asked for, with the variables as constants; see tf_freeze.h. A view into
  // the source, which must outlive it. Inputs are all of the signature unless feeds are named;
  // `shapes` fixes sizes of some. InvalidArgument for one that contradicts the signature.
  using Shapes = std::vector<std::pair<std::string, Shape>>;
  virtual Result<TfFrozenGraph> Freeze(const ImportRequest& asked, const Shapes& shapes) = 0;
};

// `file_name`: the graph's file in the folder, if not the usual one.
Result<std::unique_ptr<ModelSource>> OpenSavedModel(const std::string& folder,
                                                    std::span<const std::string> tags,
                                                    const std::string& file_name = {});
// Inputs are the placeholders, outputs the tensors that nobody consumes, both as "node:0". Feeds
// and fetches may name any tensor, and leave out ":0".
Result<std::unique_ptr<ModelSource>> OpenGraphDef(std::shared_ptr<const MappedFile> file);
// The same from its text form.
Result<std::unique_ptr<ModelSource>> OpenGraphDefText(std::shared_ptr<const MappedFile> file);

}  // namespace oncilla
