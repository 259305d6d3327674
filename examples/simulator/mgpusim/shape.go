// A file of MGPUSim's package timingconfig: into_mgpusim.py puts it there.

package timingconfig

import "flag"

// A device of NVIDIA's has as many CUs as SMs. With two in a shader array they are TPCs.
var (
	shaderArrays = flag.Int("shader-arrays", 16, "Shader arrays of a GPU.")
	cusPerArray  = flag.Int("cus-per-shader-array", 4, "CUs of a shader array.")
)
