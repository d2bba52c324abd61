import { callTags } from "../../call/hooks.ts";
import type { Config } from "../../config/config.ts";
import type { CallHook } from "../../snapshot/call-hooks.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";

type HookEvents = Pick<TelemetryEvents, "callTagged">;

/** The configured hooks in the order they run: one line each. */
export function buildHooks(
  { hooks }: Pick<Config, "hooks">,
  events: HookEvents,
): readonly CallHook[] {
  return [buildCallTags(hooks.callTagHeader, events)].filter((hook) => hook !== undefined);
}

function buildCallTags(header: string | undefined, events: HookEvents): CallHook | undefined {
  if (header === undefined) return undefined;
  return callTags({ header, onTagged: (call) => events.callTagged(call) });
}
