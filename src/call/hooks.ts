import { type EndSignal, toAbortSignal } from "../domain/waiting/end-signal.ts";
import type { Call } from "../snapshot/call.ts";
import type {
  AnswerPart,
  AskedRequest,
  CallHook,
  HookedDestination,
  HookPoints,
  RunningHooks,
} from "../snapshot/call-hooks.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import type { UpstreamRequest } from "../upstreams/adapter.ts";
import { abortable, whyEnded } from "../domain/waiting/wait.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { RunningCalls } from "./running-calls.ts";

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

/**
 * The request as the hooks returned it, with the size of its JSON for the input estimate; undefined
 * if it is unchanged. The call is watched meanwhile, as it does not run yet.
 */
export function changedByHooks<Asked extends AskedRequest>(
  call: Call,
  asked: Asked,
  running: Pick<RunningCalls, "watch" | "leave">,
): Promise<ChangedRequest<Asked> | undefined> | undefined {
  const { hooks } = call;
  return hooks && readByHooks({ call, hooks }, asked, running);
}

interface HookedCall {
  readonly call: Call;
  readonly hooks: RunningHooks;
}

interface ChangedRequest<Asked extends AskedRequest> {
  readonly request: Asked["request"];
  readonly bodyBytes: number;
}

async function readByHooks<Asked extends AskedRequest>(
  { call, hooks }: HookedCall,
  asked: Asked,
  running: Pick<RunningCalls, "watch" | "leave">,
): Promise<ChangedRequest<Asked> | undefined> {
  running.watch(call);
  const reading = untilEnded(hooks.requestRead(asked), call.signal);
  const { request } = await reading.finally(() => running.leave(call.id));
  if (request === asked.request) return undefined;
  // The caller's own body may be stored next to the parsed request.
  const text = JSON.stringify({ ...request, sent: undefined });
  return { request, bodyBytes: Buffer.byteLength(text) };
}

/** Waits for a hook no longer than its call runs. */
export function untilEnded<Value>(hook: Promise<Value>, signal: EndSignal): Promise<Value> {
  return abortable(hook, signal).catch((error: unknown) => {
    throw signal.aborted ? whyEnded(signal) : error;
  });
}

/** A call that carried a tag. */
interface TaggedCall {
  readonly tag: string;
  readonly record: UsageRecord;
  /** Parts of the answer sent to the caller; 1 for a whole answer. */
  readonly parts: number;
}

interface CallTagsOptions {
  /** Name of the header, in lower case. */
  readonly header: string;
  readonly onTagged: (call: TaggedCall) => void;
}

const wellFormed = /^[A-Za-z0-9._:/-]{1,64}$/;

/**
 * Tags calls: the value of a request header is sent to the upstream under the same name and
 * reported at the end of the call, so that operators can group usage by team or feature.
 */
export function callTags({ header, onTagged }: CallTagsOptions): CallHook {
  return {
    name: "call_tag",
    begin({ headers }): HookPoints | undefined {
      const tag = headers.get(header);
      if (tag === null) return undefined;
      let parts = 0;
      return {
        requestRead(asked) {
          if (wellFormed.test(tag)) return asked;
          throw new GatewayError("invalid_value", {
            message: `Invalid header '${header}': must be 1 to 64 letters, digits or any of . _ : / -`,
            param: header,
          });
        },
        beforeSend: (request) => ({
          ...request,
          headers: { ...request.headers, [header]: tag },
        }),
        answering(part) {
          parts += 1;
          return part;
        },
        callClosed: (record) => onTagged({ tag, record, parts }),
      };
    },
  };
}
