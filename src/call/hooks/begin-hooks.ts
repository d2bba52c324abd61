import { toAbortSignal } from "../../domain/waiting/end-signal.ts";
import type { Call } from "../../snapshot/call.ts";
import type {
  AnswerPart,
  AskedRequest,
  CallHook,
  HookedDestination,
  HookPoints,
  RunningHooks,
} from "../../snapshot/call-hooks.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { UpstreamRequest } from "../../upstreams/adapter.ts";

/** Called when a hook fails after the call is over. Must not throw. */
export type OnHookFailed = (callId: string, hook: string, error: unknown) => void;

interface BegunHook {
  readonly name: string;
  readonly points: HookPoints;
}

/** Adds the hooks that follow the call, if any. */
export function beginHooks<Begun extends Call>(call: Begun, onHookFailed: OnHookFailed): Begun {
  if (call.snapshot.hooks.length === 0) return call;
  const begun = call.snapshot.hooks.flatMap((hook) => begin(hook, call) ?? []);
  if (begun.length === 0) return call;
  return { ...call, hooks: new BegunHooks(call.id, begun, onHookFailed) };
}

function begin(hook: CallHook, call: Call): BegunHook | undefined {
  const { id, caller, headers } = call;
  const signal = toAbortSignal(call.signal);
  const points = hook.begin({ id, caller, environment: call.environment.name, headers, signal });
  return points && { name: hook.name, points };
}

/** Each hook gets the result of the one before. */
class BegunHooks implements RunningHooks {
  readonly #callId: string;
  readonly #hooks: readonly BegunHook[];
  readonly #onHookFailed: OnHookFailed;

  constructor(callId: string, hooks: readonly BegunHook[], onHookFailed: OnHookFailed) {
    this.#callId = callId;
    this.#hooks = hooks;
    this.#onHookFailed = onHookFailed;
  }

  requestRead<Asked extends AskedRequest>(asked: Asked): Promise<Asked> {
    return this.#through(asked, (points, current) => points.requestRead?.(current));
  }

  async beforeSend(
    request: UpstreamRequest,
    destination: HookedDestination,
  ): Promise<UpstreamRequest> {
    let current = request;
    for (const { points } of this.#hooks) {
      current = (await points.beforeSend?.(current, destination)) ?? current;
    }
    return current;
  }

  answering<Part extends AnswerPart>(part: Part): Promise<Part> {
    return this.#through(part, (points, current) => points.answering?.(current));
  }

  callClosed(record: UsageRecord): void {
    for (const { name, points } of this.#hooks) {
      try {
        points.callClosed?.(record);
      } catch (error) {
        this.#onHookFailed(this.#callId, name, error);
      }
    }
  }

  async #through<Part extends Kinded>(
    part: Part,
    point: (points: HookPoints, current: Part) => Kinded | undefined | Promise<Kinded>,
  ): Promise<Part> {
    let current = part;
    for (const { points } of this.#hooks) {
      const given = await point(points, current);
      if (isLike(current, given)) current = given;
    }
    return current;
  }
}

interface Kinded {
  readonly kind: string;
}

function isLike<Part extends Kinded>(part: Part, given: Kinded | undefined): given is Part {
  return given?.kind === part.kind;
}
