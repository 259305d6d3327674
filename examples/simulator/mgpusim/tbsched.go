// A file of MGPUSim's package dispatching: into_mgpusim.py puts it there.

package dispatching

// #include <stdlib.h>
// #include "adapter_c.h"
import "C"

import (
	"flag"
	"fmt"
	"log"
	"os"
	"unsafe"

	"github.com/sarchlab/akita/v4/sim"
	"github.com/sarchlab/mgpusim/v4/amd/kernels"
	"github.com/sarchlab/mgpusim/v4/amd/protocol"
	"github.com/sarchlab/mgpusim/v4/amd/timing/cp/internal/resource"
)

var (
	tbschedPolicy = flag.String("tbsched-policy", "off",
		"Who distributes work-groups: off (MGPUSim), device (tbsched, as the device does), "+
			"or a policy of tbsched.")
	tbschedDevice = flag.String("tbsched-device", "h200",
		"Device of tbsched: a name, or a file that ends in .toml.")
	tbschedBoard = flag.String("tbsched-board", "",
		"Device file with the map of the board. By default, the device's.")
	tbschedBlocks = flag.String("tbsched-blocks", "",
		"File to write: each kernel, and kernel, work-group, CU, first and last ns.")
)

// Algorithm names the algorithm that distributes work-groups.
func Algorithm() string {
	if *tbschedPolicy == "off" {
		return "round-robin"
	}
	return "tbsched"
}

// tbschedRun is a work-group that runs, or starts: its CU has to take it.
type tbschedRun struct {
	block C.struct_tbsched_block
	start sim.VTimeInSec
}

// tbschedGPU is the adapter of a GPU. All dispatchers of its command processor share it.
type tbschedGPU struct {
	adapter *C.struct_tbsched_adapter
	pool    resource.CUResourcePool
	clock   func() sim.VTimeInSec
	waiting map[int][]tbschedRun // of each kernel, in the order of its work-groups
	running map[*kernels.WorkGroup]tbschedRun
	leaving []tbschedLeave // in the order of their times; tbsched has not heard of them
	arrived bool           // a kernel, since blocks were distributed
}

// tbschedLeave is a work-group that has ended.
type tbschedLeave struct {
	block C.struct_tbsched_block
	time  sim.VTimeInSec
}

var tbschedGPUs = map[resource.CUResourcePool]*tbschedGPU{}

func tbschedGPUOf(b Builder) *tbschedGPU {
	if gpu, found := tbschedGPUs[b.cuResourcePool]; found {
		return gpu
	}

	names := []string{*tbschedPolicy, *tbschedDevice, *tbschedBoard}
	if names[0] == "device" {
		names[0] = ""
	}
	c := make([]*C.char, len(names))
	for i, name := range names {
		c[i] = C.CString(name)
		defer C.free(unsafe.Pointer(c[i]))
	}

	gpu := &tbschedGPU{
		adapter: C.tbsched_new(c[0], c[1], c[2]),
		pool:    b.cuResourcePool,
		clock:   tbschedClock(b.cp),
		waiting: make(map[int][]tbschedRun),
		running: make(map[*kernels.WorkGroup]tbschedRun),
	}
	if gpu.adapter == nil {
		tbschedRefuse(C.GoString(C.tbsched_why()))
	}
	tbschedGPUs[b.cuResourcePool] = gpu

	return gpu
}

func tbschedRefuse(why string) {
	fmt.Fprintln(os.Stderr, "MGPUSim, tbsched:", why)
	os.Exit(2)
}

func tbschedClock(cp any) func() sim.VTimeInSec {
	clock, ok := cp.(interface{ CurrentTime() sim.VTimeInSec })
	if !ok {
		tbschedRefuse("the command processor of this MGPUSim tells no time")
	}
	return clock.CurrentTime
}

// distribute starts what has room. All that leave in a cycle give back their room first: dispatchers
// hear of them one after the other.
func (g *tbschedGPU) distribute() {
	now := g.clock()
	for len(g.leaving) > 0 && g.leaving[0].time < now {
		time := g.leaving[0].time
		for len(g.leaving) > 0 && g.leaving[0].time == time {
			block := g.leaving[0].block
			if C.tbsched_leave(g.adapter, block.sm, block.slot) != 0 {
				log.Panic(C.GoString(C.tbsched_why()))
			}
			g.leaving = g.leaving[1:]
		}
		g.place(time)
	}
	if g.arrived {
		g.arrived = false
		g.place(now)
	}
}

func (g *tbschedGPU) place(time sim.VTimeInSec) {
	if C.tbsched_distribute(g.adapter) != 0 {
		log.Panic(C.GoString(C.tbsched_why()))
	}
	var block C.struct_tbsched_block
	for C.tbsched_next(g.adapter, &block) == 1 {
		kernel := int(block.kernel)
		g.waiting[kernel] = append(g.waiting[kernel], tbschedRun{block, time})
	}
}

// tbschedAlgorithm dispatches the work-groups of a kernel to the CUs that tbsched names.
type tbschedAlgorithm struct {
	gpu         *tbschedGPU
	gridBuilder kernels.GridBuilder

	info       kernels.KernelLaunchInfo
	kernel     int // 0: none has arrived
	currWG     *kernels.WorkGroup
	dispatched int
}

// RegisterCU allows the algorithm to dispatch work-groups to the CU.
func (a *tbschedAlgorithm) RegisterCU(cu resource.DispatchableCU) {
	a.gpu.pool.RegisterCU(cu)
}

// StartNewKernel says which kernel comes. It arrives when its latency is over.
func (a *tbschedAlgorithm) StartNewKernel(info kernels.KernelLaunchInfo) {
	a.gridBuilder.SetKernel(info)
	a.info, a.kernel, a.dispatched = info, 0, 0
}

// NumWG returns the number of work-groups of the kernel.
func (a *tbschedAlgorithm) NumWG() int {
	return a.gridBuilder.NumWG()
}

// HasNext checks if there are more work-groups to dispatch.
func (a *tbschedAlgorithm) HasNext() bool {
	return a.dispatched < a.gridBuilder.NumWG()
}

func (a *tbschedAlgorithm) arrive() {
	if a.gpu.pool.NumCU() != int(C.tbsched_sms(a.gpu.adapter)) {
		tbschedRefuse(fmt.Sprintf("the GPU has %d CUs, the device has %d SMs",
			a.gpu.pool.NumCU(), int(C.tbsched_sms(a.gpu.adapter))))
	}

	a.kernel = tbschedArrives(a, a.info, a.gpu.clock())
	asked := tbschedNeeds(a.info, a.NumWG())
	if C.tbsched_launch(a.gpu.adapter, C.int(a.kernel), &asked) != 0 {
		tbschedRefuse(fmt.Sprintf("kernel %d: %s", a.kernel, C.GoString(C.tbsched_why())))
	}
	a.gpu.arrived = true
}

// Next returns where the next work-group goes. It is not valid if the work-group has to wait.
func (a *tbschedAlgorithm) Next() (location dispatchLocation) {
	if a.kernel == 0 {
		a.arrive()
	}
	a.gpu.distribute()
	waiting := a.gpu.waiting[a.kernel]
	if len(waiting) == 0 {
		return dispatchLocation{}
	}

	if a.currWG == nil {
		a.currWG = a.gridBuilder.NextWG()
	}
	run := waiting[0]
	cu := a.gpu.pool.GetCU(int(run.block.sm))
	// A CU has room in pieces, too. Then the work-group waits for it, and no other takes its place.
	found, ok := cu.ReserveResourceForWG(a.currWG)
	if !ok {
		return dispatchLocation{}
	}

	location = dispatchLocation{
		valid: true,
		cu:    cu.DispatchingPort(),
		cuID:  int(run.block.sm),
		wg:    a.currWG,
	}
	for _, l := range found {
		location.locations = append(location.locations, protocol.WfDispatchLocation(l))
	}
	a.gpu.running[a.currWG] = run
	a.gpu.waiting[a.kernel] = waiting[1:]
	a.currWG = nil
	a.dispatched++

	return location
}

// FreeResources says that the work-group has ended.
func (a *tbschedAlgorithm) FreeResources(location dispatchLocation) {
	a.gpu.pool.GetCU(location.cuID).FreeResourcesForWG(location.wg)
	run := a.gpu.running[location.wg]
	delete(a.gpu.running, location.wg)
	a.gpu.leaving = append(a.gpu.leaving, tbschedLeave{run.block, a.gpu.clock()})
}

func tbschedNeeds(info kernels.KernelLaunchInfo, blocks int) C.struct_tbsched_kernel {
	p := info.Packet
	return C.struct_tbsched_kernel{
		blocks:        C.int(blocks),
		threads:       C.int(p.WorkgroupSizeX) * C.int(p.WorkgroupSizeY) * C.int(p.WorkgroupSizeZ),
		registers:     C.int(info.CodeObject.WIVgprCount),
		shared_memory: C.int(info.CodeObject.GroupSegmentByteSize),
		cluster:       1,
		carveout:      -1,
	}
}

// What follows writes the blocks, whoever distributes them.

type tbschedBlock struct {
	kernel, block int
	start         sim.VTimeInSec
}

var (
	tbschedKernels = 0
	tbschedNumbers = map[algorithm]int{} // of the kernel that each algorithm has now
	tbschedNext    = map[int]int{}       // the next work-group of each kernel
	tbschedStarted = map[*kernels.WorkGroup]tbschedBlock{}
	tbschedFile    *os.File
)

func tbschedNanoseconds(time sim.VTimeInSec) int64 {
	return int64(float64(time)*1e9 + 0.5)
}

func tbschedWrite(format string, values ...any) {
	if *tbschedBlocks == "" {
		return
	}
	if tbschedFile == nil {
		file, err := os.Create(*tbschedBlocks)
		if err != nil {
			tbschedRefuse(err.Error())
		}
		tbschedFile = file
	}
	fmt.Fprintf(tbschedFile, format, values...)
}

// tbschedArrives numbers a kernel whose latency is over, from 1 on.
func tbschedArrives(a algorithm, info kernels.KernelLaunchInfo, now sim.VTimeInSec) int {
	tbschedKernels++
	tbschedNumbers[a] = tbschedKernels
	needs := tbschedNeeds(info, a.NumWG())
	tbschedWrite("kernel %d %d %d %d %d %d\n", tbschedKernels, needs.blocks, needs.threads,
		needs.registers, needs.shared_memory, tbschedNanoseconds(now))
	return tbschedKernels
}

// tbschedStarts is called for each work-group that a dispatcher sends to a CU.
func tbschedStarts(d *DispatcherImpl, wg *kernels.WorkGroup) {
	now := tbschedClock(d.cp)()
	kernel := 0
	if a, ok := d.alg.(*tbschedAlgorithm); ok {
		kernel, now = a.kernel, a.gpu.running[wg].start
	} else {
		if d.numDispatchedWGs == 0 {
			r := d.dispatching
			tbschedArrives(d.alg, kernels.KernelLaunchInfo{
				CodeObject: r.CodeObject, Packet: r.Packet, WGFilter: r.WGFilter}, now)
		}
		kernel = tbschedNumbers[d.alg]
	}
	tbschedStarted[wg] = tbschedBlock{kernel, tbschedNext[kernel], now}
	tbschedNext[kernel]++
}

// tbschedEnds is called for each work-group that has ended.
func tbschedEnds(d *DispatcherImpl, location dispatchLocation) {
	block := tbschedStarted[location.wg]
	delete(tbschedStarted, location.wg)
	tbschedWrite("block %d %d %d %d %d\n", block.kernel, block.block, location.cuID,
		tbschedNanoseconds(block.start), tbschedNanoseconds(tbschedClock(d.cp)()))
}
