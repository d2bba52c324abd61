import { writeSync } from "node:fs";
import type { Config } from "../../config/config.ts";
import { settingsInUse } from "../../config/effective-settings.ts";
import { ConfigWatch } from "../../config/watch.ts";
import { readServeArguments, withListeners, type ServeArguments } from "./serve-options.ts";
import { parseServed, withDataDir } from "./load-settings.ts";
import { issueDemoAccess } from "./introduce-demo.ts";
import { explainStart } from "./start-messages.ts";
import { systemClock } from "../../domain/clock.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";
import { failureFacts } from "../../process/failure-facts.ts";
import type { ControlStart, ToControl, ToMain } from "../../process/messages.ts";
import { StartProblem, ThreadLink, type Message, type Port } from "../../process/thread-link.ts";
import { ControlPlane } from "../../process/control/control-plane.ts";
import { watchMain } from "../../process/control/main-watch.ts";

declare const self: Worker;
const standardError = 2;
/** Longer than a start usually takes. */
const longestStartMs = 1_500;

/* The control thread of a gateway process. */
// The first message says with what it begins; the link hears the others, from the same turn on.
self.onmessage = ({ data }: MessageEvent<ControlStart>) => begin(data);

/** Begins; a problem is the answer to the first question of the main thread. */
function begin(start: ControlStart): void {
  const port: Port = {
    post: (message) => self.postMessage(message),
    listen(hear) {
      self.onmessage = ({ data }: MessageEvent<Message>) => hear(data);
    },
  };
  const link = new ThreadLink<ToMain, ToControl>(port, systemClock);
  const log: LogSink = {
    write: (line) => link.tell("log", line),
    droppedLines: 0,
    configure: () => undefined,
  };
  const fail = (thrown: unknown): void => {
    const { error, positions } = failureFacts(thrown);
    const at = positions.map((position) => `\n    at ${position}`).join("");
    writeSync(standardError, `sluice: the control thread crashed: ${error}${at}\n`);
    // Ends the thread alone; the main thread starts another one.
    // oxlint-disable-next-line unicorn/no-process-exit
    process.exit(1);
  };
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
  const args = readServeArguments(start.args);
  const parsed = parseServed(start.config, args, start.variables);
  const config = withListeners(parsed.config, args);
  try {
    open({ start, args, config, fileConfig: parsed.fileConfig, link, log });
  } catch (error) {
    link.handle({
      open() {
        throw new StartProblem(explainStart(error, config.dataDir));
      },
    });
  }
}

interface Opened {
  readonly start: ControlStart;
  readonly args: ServeArguments;
  readonly config: Config;
  readonly fileConfig: Config;
  readonly link: ThreadLink<ToMain, ToControl>;
  readonly log: LogSink;
}

function open({ start, args, config, fileConfig, link, log }: Opened): void {
  const { path, text } = start.config;
  const watch = watchMain({
    end() {
      writeSync(standardError, "sluice: the main thread hangs: the process is ended\n");
      process.kill(process.pid, "SIGKILL");
    },
    isOrphan: () => process.ppid !== start.parentPid,
  });
  const side = new ControlPlane({
    config,
    text: start.config,
    link,
    log,
    clock: systemClock,
    randomBytes: (target) => crypto.getRandomValues(target),
    number: start.number,
    portUse: start.portUse,
    pid: start.parentPid,
    explain: (error) => explainStart(error, config.dataDir),
    reload: () => file?.reload(),
    settingsOf(latest, first) {
      const { data, admin, "data-dir": dataDir } = args;
      const given = { "listen.data": data, "listen.admin": admin, data_dir: dataDir };
      return settingsInUse(latest, first, { env: start.variables, given });
    },
    issueDemoAccess,
    onTick: () => watch.tick(),
    onStopped: () => {
      watch.stop();
      file?.[Symbol.dispose]();
    },
  });
  const { events } = side.telemetry;
  // Compiled code and garbage of the start are of no more use.
  setTimeout(() => Bun.shrink(), longestStartMs);
  // The demo has no file.
  const file =
    path === undefined
      ? undefined
      : new ConfigWatch({
          path,
          text,
          env: start.variables,
          current: fileConfig,
          now: () => Date.now(),
          onConfig(next, nextText, isWhole) {
            const served = withListeners(withDataDir(next, args, path), args);
            side.reconfigure(served, nextText, isWhole);
            events.configAccepted(path);
          },
          onProblems: (problems) => events.configRefused(problems),
          onNotice: (notice) => events.configNotice(notice),
        });
}
