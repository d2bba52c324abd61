import type { TargetOut } from "../../src/domain/model.ts";
import type { UpstreamFailureDetails } from "../../src/domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../../src/domain/errors/failure-kind.ts";
import {
  type AttemptWatch,
  type ReturnedTarget,
  TargetHealth,
} from "../../src/routing/health/target-health.ts";
import type { AttemptTerms } from "../../src/routing/health/target-state.ts";
import { ManualClock } from "./manual-clock.ts";
import { plainRouting, targetOf } from "./pipeline-fixtures.ts";

/** Five in a row, or half of twenty; one second at first, at most ten. */
const outSettings = plainRouting.out;
export const up = targetOf("up");

export type End = "ok" | "left" | UpstreamFailureKind | UpstreamFailureDetails;

/** The health of one target, with a clock that only the test moves. */
export function start() {
  const clock = new ManualClock();
  const out: TargetOut[] = [];
  const returned: ReturnedTarget[] = [];
  const health = new TargetHealth({
    clock,
    settings: () => outSettings,
    onOut: (event) => void out.push(event),
    onReturned: (event) => void returned.push(event),
  });
  /** With a place, as the gate takes and gives it back. */
  const tryBegin = (terms: Partial<AttemptTerms> = {}): AttemptWatch | undefined => {
    const { key = "k" } = terms;
    const limit = health.limitOf(up.id);
    if (!limit.hasRoom(key, clock.monotonic())) return undefined;
    const watch = health.tryBegin(up, { isStreamed: true, ...terms, key });
    if (watch === undefined) return undefined;
    limit.take(key);
    let isHeld = true;
    const ended: AttemptWatch["ended"] = (outcome) => {
      watch.ended(outcome);
      if (isHeld) limit.giveBack(key);
      isHeld = false;
    };
    return { answered: () => watch.answered(), ended, overdueAfterMs: watch.overdueAfterMs };
  };
  /** As the last resort, so times out do not matter. */
  const begin = (key = "k", account = key): AttemptWatch => {
    const watch = tryBegin({ key, account, hasToServe: true });
    if (watch === undefined) throw new Error("the target takes no attempt");
    return watch;
  };
  const attempt = (outcome: End, times = 1, key = "k"): void => {
    for (let time = 0; time < times; time += 1) {
      const watch = begin(key);
      if (outcome === "ok") watch.answered();
      watch.ended(endOf(outcome));
    }
  };
  /** Five failures of three keys. */
  const takeOut = (kind: End = "unavailable"): void => {
    for (const key of ["a", "b", "c", "a", "b"]) attempt(kind, 1, key);
  };
  const probe = (outcome: UpstreamFailureKind | undefined): void => {
    const watch = health.tryBeginProbe(up.id);
    if (watch === undefined) throw new Error("a probe is under way");
    watch.ended(outcome === undefined ? "answered" : { kind: outcome, message: "" });
  };
  const answer = (times: number, key = "k"): void => {
    for (let time = 0; time < times; time += 1) {
      const watch = begin(key);
      watch.answered();
      watch.ended("ok");
    }
  };
  const view = (key = "k") => health.view(up.id, key);
  const limit = (): number => health.limitOf(up.id).limitAt(clock.monotonic());
  const inFlight = (): number => health.limitOf(up.id).inFlight;
  const events = { out, returned };
  const state = { view, limit, inFlight };
  return { clock, health, ...events, tryBegin, begin, attempt, takeOut, probe, answer, ...state };
}

export function endOf(outcome: End): "ok" | "left" | UpstreamFailureDetails {
  if (typeof outcome !== "string" || outcome === "ok" || outcome === "left") return outcome;
  return { kind: outcome, message: "" };
}

/** Whether it counts towards a time out, is a sign of life, or is neither. */
