import type { Attempt, CallRecord } from "./records.ts";
import type { Fault } from "./scenario.ts";
import { violate, type World } from "./world.ts";

/** Faults that a retry cannot resolve. */
const lastingFaults: ReadonlySet<Fault | undefined> = new Set(["invalid", "content-refused"]);
/** Faults without any effect, whose retry at the same target takes no budget. */
const freeFaults: ReadonlySet<Fault | undefined> = new Set(["stale-credential", "skewed"]);
const leastMs = 1e-6;
/** No target is found silent sooner. */
const leastSilentMs = 250;

/** The rules for every request that is sent upstream. */
export function checkBegin(world: World, call: CallRecord, attempt: Attempt): void {
  const { id, startedAt: now } = attempt;
  const { plan } = call;
  const wrong = (text: string): void => violate(world, "attempts", text, plan.id);
  if (call.leftAt !== undefined) wrong(`${id} began after the caller had left`);
  if (call.crashedAt !== undefined) wrong(`${id} was sent by a process that has ended`);
  if (call.endedAt !== undefined) wrong(`${id} began after the call had ended`);
  // A choice with its own request may have waited for a place.
  if (call.firstEventAt !== undefined && isOneByOne(world, call)) {
    wrong(`${id} began after the first event was delivered`);
  }
  if (call.deadlineAt !== undefined && now >= call.deadlineAt) {
    wrong(`${id} began ${now - call.deadlineAt} ms after the caller's deadline`);
  }
  if (call.opened === undefined) {
    violate(world, "ledger", `${id} was sent before the ledger knew`, plan.id);
  }
  const final = call.attempts.find((earlier) => {
    return earlier.how === "closed" && isLasting(world, earlier, attempt);
  });
  // A waiting request may get the place that a failure releases; then it must end with it.
  const isAtOnce = final?.endedAt === now;
  if (isAtOnce && mayWait(world, call)) {
    attempt.mustEndAtOnce = true;
    return;
  }
  if (final !== undefined) wrong(`${id} began though ${final.id} met ${final.fault}`);
  if (isOneByOne(world, call)) {
    checkWait(call, attempt, wrong);
    checkBudget(world, call, attempt);
  }
  checkOthers(world, { call, attempt, wrong });
}

/** A model with a larger context window may take what was too long for another. */
function isLasting({ scenario }: World, { fault, model }: Attempt, next: Attempt): boolean {
  const windowOf = (name: string): number =>
    scenario.models.find(({ targets }) => targets.some((target) => target.model === name))
      ?.contextWindow ?? 0;
  return (
    lastingFaults.has(fault) || (fault === "overflow" && windowOf(next.model) <= windowOf(model))
  );
}

/** Whether another request of the call, such as a hedge, may be waiting for a place. */
function mayWait(world: World, call: CallRecord): boolean {
  const model = world.scenario.models.find(({ alias }) => alias === call.plan.alias);
  const isAlone = model?.targets.length === 1 && model.fallbacks === undefined;
  return !isAlone || !isOneByOne(world, call);
}

/**
 * Whether each attempt is one request. Batches of embeddings, and choices at a provider with one a
 * request, are several, with their own retries.
 */
export function isOneByOne({ scenario }: World, { plan }: CallRecord): boolean {
  if (plan.kind === "embedding") return false;
  return plan.parts === 1 || scenario.upstreams.every(({ kind }) => kind === "openai");
}

/** Every retry at a target was granted by a budget of its process. */
function checkBudget(world: World, call: CallRecord, attempt: Attempt): void {
  const { id, process, upstream, model } = attempt;
  const earlier = call.attempts.filter((one) => one.upstream === upstream && one.model === model);
  const free = earlier.filter(({ fault, how }) => freeFaults.has(fault) && how === "closed");
  if (earlier.length === free.length) return;
  // After a backoff the budget of the last failed target was used, for any next target.
  const made = world.madeRetries.add(process);
  const granted = world.grantedRetries.of(process);
  if (made <= granted) return;
  violate(world, "retry budget", `${id} is retry ${made} of ${granted} granted`, call.plan.id);
}

/** The call must respect the Retry-After of a provider. */
function checkWait(call: CallRecord, attempt: Attempt, wrong: (text: string) => void): void {
  for (const earlier of call.attempts) {
    const { endedAt, upstream, model, script, how } = earlier;
    const isAnswered = endedAt !== undefined && how === "closed";
    if (!isAnswered || upstream !== attempt.upstream || model !== attempt.model) continue;
    const seconds = script.status === 429 ? Number(script.headers["retry-after"] ?? 0) : 0;
    const waitedMs = attempt.startedAt - endedAt;
    if (waitedMs + leastMs >= seconds * 1_000) continue;
    wrong(`${attempt.id} waited ${waitedMs} ms, not the ${seconds} s of ${earlier.id}`);
  }
}

interface Beginning {
  readonly call: CallRecord;
  readonly attempt: Attempt;
  readonly wrong: (text: string) => void;
}

/**
 * A call has one attempt at a time; two if the first is slow, then the second is a hedge after its
 * delay, or after the shortest time in which a target is found silent.
 */
function checkOthers(world: World, { call, attempt, wrong }: Beginning): void {
  const running = call.attempts.filter(({ endedAt }) => endedAt === undefined);
  const [first] = running;
  const model = world.scenario.models.find(({ alias }) => alias === call.plan.alias);
  if (first === undefined || model === undefined) return;
  const { hedgeAfterMs } = model;
  if (!isOneByOne(world, call)) {
    const { kind, parts } = call.plan;
    const fanOut = Math.max(...world.scenario.models.map((each) => each.fanOut));
    const most = 2 * (kind === "embedding" ? fanOut : parts);
    if (running.length >= most) wrong(`${running.length + 1} requests run at once`);
    return;
  }
  if (running.length > 1) {
    return wrong(`${attempt.id} began while ${running.map(({ id }) => id).join(", ")} ran`);
  }
  // The first may have waited for a place at its upstream before it was sent.
  const afterMs = attempt.startedAt - call.plan.atMs;
  if (afterMs + leastMs >= (hedgeAfterMs ?? Infinity)) return;
  if (attempt.startedAt - first.startedAt + leastMs >= leastSilentMs) return;
  wrong(`${attempt.id} hedges after ${afterMs} ms`);
}
