import type { Config } from "../../config/config.ts";
import { watchConfig, type ConfigWatch } from "../../config/watch.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";
import type { CommandIo } from "../command.ts";
import type { Settings } from "./load-settings.ts";

export interface FollowOptions {
  readonly events: TelemetryEvents;
  /** Called with a changed configuration and the text it was parsed from. */
  readonly onConfig: (config: Config, text: string) => void;
}

/** Follows the changes of the file; undefined for the demo, which has none. */
export function followFile(
  { path, text, fileConfig }: Pick<Settings, "path" | "text" | "fileConfig">,
  env: CommandIo["environment"]["variables"],
  { events, onConfig }: FollowOptions,
): ConfigWatch | undefined {
  if (path === undefined) return undefined;
  return watchConfig({
    path,
    text,
    env,
    current: fileConfig,
    now: () => Date.now(),
    onConfig(next, nextText) {
      onConfig(next, nextText);
      events.configAccepted(path);
    },
    onProblems: (problems) => events.configRefused(problems),
    onNotice: (notice) => events.configNotice(notice),
  });
}
