#pragma once

#define MAX_WARP_PER_SHADER 64
