// The version of torch as one number: 2.11 is 211.
#pragma once

#include <torch/version.h>

#define NBKIT_TORCH (TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR)
