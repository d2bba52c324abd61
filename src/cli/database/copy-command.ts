import { nameOfDatabase } from "../../domain/addresses/database-name.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { openSource, openTarget, readStorage } from "./copy-ends.ts";
import { copyDatabase, type CopyProgress } from "../../store/repositories/copy/copy-database.ts";
import type { TableSummary } from "../../store/repositories/copy/compare-tables.ts";
import { CopyRefused } from "../../store/repositories/copy/copy-place.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import {
  CommandError,
  readArguments,
  reasonOf,
  UsageError,
  type Command,
  type CommandIo,
} from "../command.ts";

const progressMs = 1_000;

const options = { from: { type: "string" }, to: { type: "string" } } as const;

export const copyCommand: Command = {
  name: "copy",
  help: () => `Usage: sluice copy --from URL --to URL

Copies all data of a gateway's database into an empty one, and compares every row. A URL is
sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE. Stop the gateways of both databases first:
the command refuses databases that are in use. If it is interrupted, run it again to continue. Until it
is complete, no gateway starts on the copy. The source must have the schema of this version, and is not
changed.

The pepper is not in the database. Give the gateways of the copy the same auth.peppers, or set it to
the content of the data directory's file \`pepper\`. Keep the data directory, which may hold calls that
are not in the database yet.

The URLs can also be in SLUICE_COPY_FROM and SLUICE_COPY_TO, so that other users of the machine do not
see the passwords.

Exit code: 0 copied and compared, 1 not or only partly copied, 2 wrong usage.`,
  run: (args, io) => copy(args, io),
};

async function copy(args: readonly string[], io: CommandIo): Promise<number> {
  const { values, positionals } = readArguments(args, options);
  if (positionals.length > 0) throw new UsageError(`copy does not take '${positionals[0]}'`);
  const { variables } = io.environment;
  const from = readUrl("--from", values.from ?? variables["SLUICE_COPY_FROM"]);
  const to = readUrl("--to", values.to ?? variables["SLUICE_COPY_TO"]);
  try {
    await using source = await openSource(from);
    await using target = await openTarget(to);
    io.report(`copying ${source.name} as it is now to ${target.name}`);
    const summaries = await copyDatabase({
      source,
      target,
      signal: io.signal,
      onResumed: () => io.report("going on with the copy that was begun"),
      onCopied: reporter(io),
      onComparing: () => io.report("comparing all rows"),
    });
    for (const line of tableOf(summaries)) io.print(line);
    io.report(`${target.name} is a complete copy. Give its gateways the same pepper.`);
    return exitCodes.ok;
  } catch (error) {
    const isKnown = error instanceof CopyRefused || error instanceof StorageUnavailable;
    throw isKnown ? new CommandError(`not copied: ${reasonOf(error)}`) : error;
  }
}

function readUrl(option: string, text: string | undefined) {
  if (text === undefined) throw new UsageError(`name the database: ${option} URL`);
  const storage = readStorage(text);
  if (storage === undefined) {
    throw new UsageError(`${option} takes sqlite:PATH or postgres://..., not '${shown(text)}'`);
  }
  return storage;
}

/** Without a password. */
function shown(text: string): string {
  return URL.canParse(text) && text.includes("://") ? nameOfDatabase(text) : text;
}

/** Reports the first and the last batch of a table, and one each second. */
function reporter({ clock, report }: CommandIo): (progress: CopyProgress) => void {
  let last = { table: "", at: 0 };
  return ({ table, rows, of }) => {
    const now = clock.monotonic();
    if (rows < of && last.table === table && now - last.at < progressMs) return;
    last = { table, at: now };
    report(`${table}: ${rows} of ${of}`);
  };
}

function tableOf(summaries: readonly TableSummary[]): readonly string[] {
  const width = Math.max(...summaries.map(({ table }) => table.length));
  return summaries.map(({ table, rows, digest }) =>
    [table.padEnd(width), String(rows).padStart(9), digest].join("  "),
  );
}
