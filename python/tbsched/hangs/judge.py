"""From what a capture, a debugger and the model say to the kind of the hang."""

from __future__ import annotations

from tbsched.hangs.evidence import Observations, gather_evidence
from tbsched.hangs.hang import HangReport
from tbsched.hangs.rules import (
    host,
    host_memory,
    inside,
    legacy,
    loading,
    progress,
    queued_write,
    room,
    slow,
)
from tbsched.hangs.rules.finding import Finding
from tbsched.prediction.model import policy_of, prepared

# The first one with an answer counts; the last one always has one.
RULES = (
    progress.goes_on,
    host_memory.samples_poll_host_memory,
    loading.call_loads,
    loading.driver_loads,
    slow.nothing_waits,
    slow.writer_is_slow,
    host_memory.code_polls_host_memory_only,
    room.never_starts,
    room.not_started,
    loading.not_on_gpu,
    host_memory.code_polls_host_memory_too,
    host.stream_waits,
    host.allocation_waits,
    legacy.write_waits_at_the_legacy_stream,
    queued_write.write_waits_in_its_queue,
    host.copy_waits,
    host.gpu_is_empty,
    host_memory.code_polls_host_memory_that_it_writes,
    inside.inside_kernels,
)


def report_of(observations: Observations) -> HangReport:
    """Returns why the program hangs, or that it does not: the first rule's answer. Raises
    ValueError: operations of several GPUs have not ended."""
    evidence = gather_evidence(observations)
    findings: list[Finding] = []
    for rule in RULES:
        findings.append(rule(evidence))
        if findings[-1].kind is not None:
            break
    answer, spec, capture = findings[-1], evidence.seen.spec, evidence.capture
    assert answer.kind is not None
    proof = [sentence for finding in findings for sentence in finding.proof]
    if answer.stranded:
        proof += evidence.contradictions()
    unseen = [*evidence.unseen, *(sentence for finding in findings for sentence in finding.unseen)]
    return HangReport(
        kind=answer.kind, reason=answer.reason, resident=evidence.resident,
        stranded=answer.stranded, calls=evidence.calls, fixes=answer.fixes,
        proof=tuple(dict.fromkeys(proof)), unseen=tuple(dict.fromkeys(unseen)),
        device=None if spec is None else prepared(spec, policy_of(spec, None))[1],
        process=None if capture is None else capture.process, may_be=answer.may_be,
    )  # fmt: skip
