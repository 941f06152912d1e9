// The classes that a run found: from a model that names them itself (an output of strings together
// with one of scores) or from scores and a file of labels.
#pragma once

#include <string>
#include <vector>

#include "engine/session/model.h"
#include "tools/oncilla/files/svg.h"

namespace oncilla::tool {

struct TopLabels {
  std::string output;                         // the scores were in this output
  bool softmax = false;                       // whether they were converted to a distribution
  std::vector<std::vector<LabelScore>> rows;  // per image of the batch, best first
};

// One label per line, or a .json file: a list of strings or a tensor of strings. Failures have
// Stage::kFile.
Result<std::vector<std::string>> ReadLabels(const std::string& file);

// The `k` best of each row. An output of strings and one of floats of the same shape are labels and
// scores; else the output of floats with the most columns counts, classes named by `labels` or,
// without any, by number. InvalidArgument when no output looks like scores, or there are fewer
// labels than classes.
Result<TopLabels> FindTopLabels(const std::vector<NamedTensor>& outputs, int k,
                                const std::vector<std::string>& labels);

// "espresso 0.95  ######", one class a line, bars aligned.
std::string PrintBars(const std::vector<LabelScore>& rows);

}  // namespace oncilla::tool
