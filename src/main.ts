#!/usr/bin/env bun
import packageJson from "../package.json" with { type: "json" };
import { AskedToEnd, exitCodes, type CommandIo, type EndSignal } from "./cli/command.ts";
import { runCommandLine } from "./cli/run-command-line.ts";
import { createProcessInput, createProcessOutput } from "./cli/standard-streams.ts";
import { readEnvironment } from "./config/environment.ts";
import { systemClock } from "./domain/clock.ts";

// What Sluice writes (keys' digests, usage, the pepper) is for its own user alone.
process.umask(0o077);
process.exitCode = await runCommandLine(process.argv.slice(2), packageJson.version, createIo());

function createIo(): CommandIo {
  const asked = new AbortController();
  const ask = (by: EndSignal) => (): void => {
    // The second one means now: whatever still drains is given up.
    if (asked.signal.aborted) process.exit(exitCodes.failed);
    asked.abort(new AskedToEnd(by));
  };
  process.on("SIGTERM", ask("SIGTERM"));
  process.on("SIGINT", ask("SIGINT"));
  return {
    environment: readEnvironment(),
    print: (line) => console.log(line),
    report: (line) => console.error(line),
    write: createProcessOutput(),
    input: createProcessInput(),
    clock: systemClock,
    random: (target) => crypto.getRandomValues(target),
    signal: asked.signal,
    onReload: (callback) => void process.on("SIGHUP", callback),
  };
}
