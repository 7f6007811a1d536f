#include "optim/parts/muon_scale.h"

#include <math.h>

double pl_muon_scale(pl_muon_convention c, size_t rows, size_t cols) {
  double r = (double)rows, k = (double)cols;
  bool match_rms = c == PL_MUON_MOONLIGHT || c == PL_MUON_TORCH_MATCH_RMS;
  return match_rms ? 0.2 * sqrt(fmax(r, k)) : sqrt(fmax(1, r / k));
}

double pl_muon_normaliser(pl_muon_convention c, double norm) {
  bool torch = c == PL_MUON_TORCH || c == PL_MUON_TORCH_MATCH_RMS;
  return torch ? fmax(norm, 1e-7) : norm + 1e-7;
}

double pl_muon_gradient_weight(pl_muon_convention c, double momentum) {
  return c == PL_MUON_MOONLIGHT ? 1 : 1 - momentum;
}
