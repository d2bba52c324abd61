import { createApp, type App, type AppOverrides } from "./app.ts";
import type { Clock } from "../../src/domain/clock.ts";
import type { Config } from "../../src/config/config.ts";

export type TestApp = App;

/**
 * Several gateway processes on one data directory, in this process, each with a port and perhaps a
 * clock of its own.
 */
export async function createCluster(
  config: Config,
  overrides: AppOverrides = {},
  clocks: readonly Clock[] = [],
): Promise<App> {
  const apps: App[] = [];
  for (let number = 1; number <= config.processes; number += 1) {
    const clock = clocks[number - 1];
    apps.push(await createApp(config, { ...overrides, ...(clock && { clock }) }, number));
  }
  const first = (): App => {
    const [app] = apps;
    if (app === undefined) throw new Error("there is no process");
    return app;
  };
  let turn = 0;
  return {
    get dataUrl() {
      turn += 1;
      return apps[turn % apps.length]?.dataUrl ?? "";
    },
    get adminUrl() {
      return apps.find(({ adminUrl }) => adminUrl !== "")?.adminUrl ?? "";
    },
    events: first().events,
    get admin() {
      return first().admin;
    },
    reconfigure(next) {
      for (const app of apps) app.reconfigure(next);
    },
    async flushUsage() {
      for (const app of apps.toReversed()) await app.flushUsage();
    },
    async drain(options) {
      await Promise.all(apps.map((app) => app.drain(options)));
    },
    async [Symbol.asyncDispose]() {
      for (const app of apps.toReversed()) await app[Symbol.asyncDispose]();
    },
  };
}
