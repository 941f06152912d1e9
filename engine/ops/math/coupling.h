// Attributes of an op for classifiers that decide between pairs of classes, in the family of trees.
#pragma once

#include <cstdint>

namespace oncilla {

// CoupleProbabilities(x[N, P]) -> y[N, classes]: the class probabilities that agree best with those
// of pairs. x has one number for each pair i < j, in the order (0, 1), (0, 2) .. (1, 2) ..: the
// probability of class i, given that it is i or j. The second method of Wu, Lin and Weng,
// "Probability Estimates for Multi-class Classification by Pairwise Coupling", 2004, with libsvm's
// number of iterations and tolerance, in f32.
struct CoupleProbabilitiesAttrs {
  int64_t classes = 2;
  void Fields(auto&& field) { field("classes", classes); }
};

}  // namespace oncilla
