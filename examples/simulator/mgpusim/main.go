// A sample of MGPUSim: into_mgpusim.py puts it there. Four programs run at the same time.
package main

import (
	"flag"

	"github.com/sarchlab/mgpusim/v4/amd/benchmarks/amdappsdk/vectoradd"
	"github.com/sarchlab/mgpusim/v4/amd/benchmarks/heteromark/fir"
	"github.com/sarchlab/mgpusim/v4/amd/samples/runner"
)

func main() {
	size := flag.Int("size", 128, "Threads of the first program, in thousands.")
	flag.Parse()

	runner := new(runner.Runner).Init()

	for part := 1; part <= 3; part++ {
		filter := fir.NewBenchmark(runner.Driver())
		filter.Length = *size * 1024 / part
		filter.SelectGPU([]int{1})
		runner.AddBenchmarkWithoutSettingGPUsToUse(filter)
	}

	sum := vectoradd.NewBenchmark(runner.Driver())
	sum.Width, sum.Height = 1024, uint32(*size)
	sum.SelectGPU([]int{1})
	runner.AddBenchmarkWithoutSettingGPUsToUse(sum)

	runner.Run()
}
