import type { Config } from "../../config/config.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { inspectSchema, openDatabaseStores } from "../../process/wiring/database-stores.ts";
import { StorageUnavailable, UnusableDatabase } from "../../store/errors.ts";
import { Installation } from "../../store/installation/installation.ts";
import { type Migration, type SchemaCheck, stepsToRun } from "../../store/schema-version.ts";
import {
  CommandError,
  readArguments,
  reasonOf,
  UsageError,
  type Command,
  type CommandIo,
} from "../command.ts";
import { loadSettings, settingsOptions } from "../serve/load-settings.ts";

const retryMs = 500;

const options = {
  ...settingsOptions,
  check: { type: "boolean" },
  wait: { type: "string" },
} as const;

export const migrateCommand: Command = {
  name: "migrate",
  help: () => `Usage: sluice migrate [--check] [--wait SECONDS] [--config FILE] [--data-dir DIR]

Brings the schema of the database up to date, or creates it in an empty database, as a gateway does
when it starts. All steps run in one transaction, so an interrupted command changes nothing. Gateways
may keep running if the steps are compatible with them. Run it as the user of the gateway, with its
configuration. With \`storage.migrate: check\`, gateways leave this to the command.

Options:
  --check             only print the steps that would run
  --wait SECONDS      how long to wait for a database that is locked or not there yet (default: 60)
  -c, --config FILE   configuration of the gateway (default: SLUICE_CONFIG, else ./sluice.yaml, else
                      /etc/sluice/sluice.yaml)
  --data-dir DIR      where it keeps its state, instead of the configured directory

Exit code: 0 the schema is up to date, 1 it could not be updated, 2 wrong usage, 3 with --check: steps
are pending.`,
  run: (args, io) => migrate(args, io),
};

async function migrate(args: readonly string[], io: CommandIo): Promise<number> {
  const { values, positionals } = readArguments(args, options);
  if (positionals.length > 0) throw new UsageError(`migrate does not take '${positionals[0]}'`);
  const patience = new Patience(readSeconds(values.wait), io);
  const { storage, ...config } = loadSettings(values, io).config;
  const before = await patience.run(() => inspectSchema(storage));
  const due = stepsDue(before);
  if (due.length === 0) {
    io.print(`${before.name}: the schema ${before.found.version} is up to date`);
    return exitCodes.ok;
  }
  if (values.check === true) {
    io.print(describe(before, due));
    return exitCodes.due;
  }
  await patience.run(() => runSteps({ ...config, storage: { ...storage, migrates: true } }, io));
  io.print(`${before.name}: the schema is ${before.migrations.length} now`);
  for (const { name } of due) io.print(`  ${name}`);
  return exitCodes.ok;
}

function readSeconds(text = "60"): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new UsageError(`--wait takes seconds, such as 60, not '${text}'`);
}

function stepsDue(check: SchemaCheck): readonly Migration[] {
  try {
    return stepsToRun(check, true);
  } catch (error) {
    throw error instanceof UnusableDatabase ? new CommandError(error.message) : error;
  }
}

function describe({ name, found, migrations }: SchemaCheck, due: readonly Migration[]): string {
  const names = due.map((step) => `\n  ${step.name}`).join("");
  const change = `${name}: from schema ${found.version} to ${migrations.length}:${names}`;
  if (found.version === 0) return change;
  const since = Math.max(...due.map(({ compatibleSince }) => compatibleSince));
  return since <= found.version
    ? `${change}\nGateways that use it now can go on.`
    : `${change}\nStop gateways of versions before schema ${since} first.`;
}

/** By opening the database as a gateway would. */
async function runSteps(config: Config, io: CommandIo): Promise<void> {
  const owner = new Installation(config, io);
  const { peppers } = owner;
  const { connection } = openDatabaseStores(config.storage, io.clock, { owner, peppers });
  try {
    await connection.open();
  } finally {
    await connection.close();
  }
}

/** Repeats what fails because of a database that may recover, for a while. */
class Patience {
  readonly #endsAt: number;
  readonly #io: CommandIo;
  #told = "";

  constructor(seconds: number, io: CommandIo) {
    this.#endsAt = io.clock.monotonic() + seconds * 1000;
    this.#io = io;
  }

  /** Throws `CommandError` when it is exhausted, or a retry does not help. */
  async run<Result>(task: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await task();
      } catch (error) {
        if (!(error instanceof StorageUnavailable)) throw error;
        this.#refuse(error);
      }
      await Bun.sleep(retryMs);
    }
  }

  #refuse(error: StorageUnavailable): void {
    const reason = reasonOf(error);
    if (error instanceof UnusableDatabase) throw new CommandError(error.message);
    const { clock, signal } = this.#io;
    if (signal.aborted || clock.monotonic() >= this.#endsAt) throw new CommandError(reason);
    if (reason !== this.#told) this.#io.report(`${reason}; trying again`);
    this.#told = reason;
  }
}
