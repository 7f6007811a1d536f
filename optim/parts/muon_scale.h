/* The published conventions of Muon: buffer, normaliser and step size (Keller Jordan, Moonlight arXiv 2502.16982,
 * torch.optim.Muon). */
#ifndef PL_OPTIM_PARTS_MUON_SCALE_H
#define PL_OPTIM_PARTS_MUON_SCALE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum pl_muon_convention {
  PL_MUON_MOONLIGHT,      /* arXiv 2502.16982: sum buffer, 0.2 sqrt(max(rows, cols)), norm + 1e-7 */
  PL_MUON_KELLER,         /* KellerJordan/Muon: EMA buffer, sqrt(max(1, rows / cols)), norm + 1e-7 */
  PL_MUON_TORCH,          /* torch.optim.Muon "original": like keller, with max(norm, 1e-7) */
  PL_MUON_TORCH_MATCH_RMS /* torch.optim.Muon "match_rms_adamw": EMA buffer, moonlight's scale, max(norm, 1e-7) */
} pl_muon_convention;

/* What the learning rate is multiplied with for a matrix of that shape, rows = d_out. */
double pl_muon_scale(pl_muon_convention c, size_t rows, size_t cols);

/* What the matrix is divided by before Newton-Schulz, from its Frobenius norm. */
double pl_muon_normaliser(pl_muon_convention c, double norm);

/* Weight of the gradient in the buffer mu B + w g and in the Nesterov step mu B + w g: 1 - mu (EMA) or 1 (sum). */
double pl_muon_gradient_weight(pl_muon_convention c, double momentum);

#endif
