// Audio: WAV files as host functions, spectra computed in double.
#pragma once

#include <span>
#include <vector>

#include "backends/cpu/kernel.h"
#include "engine/ops/nn/audio.h"

namespace oncilla::cpu {

Result<std::vector<Tensor>> DecodeWav(const DecodeWavAttrs& attrs, const NodeView& node,
                                      std::span<const Tensor> in);
Result<std::vector<Tensor>> EncodeWav(const NoAttrs& attrs, const NodeView& node,
                                      std::span<const Tensor> in);
Status Spectrogram(const SpectrogramAttrs& attrs, const Args& args);
Status Mfcc(const MfccAttrs& attrs, const Args& args);

}  // namespace oncilla::cpu
