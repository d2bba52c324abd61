import { callTags } from "../../call/hooks/call-tags.ts";
import type { Config } from "../../config/config.ts";
import type { CallHook } from "../../snapshot/call-hooks.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";

/** The configured hooks in the order they run. */
export function buildHooks(
  { hooks }: Pick<Config, "hooks">,
  events: Pick<TelemetryEvents, "callTagged">,
): readonly CallHook[] {
  const { callTagHeader: header } = hooks;
  if (header === undefined) return [];
  return [callTags({ header, onTagged: (call) => events.callTagged(call) })];
}
