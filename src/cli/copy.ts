import { nameOfDatabase } from "../domain/addresses.ts";
import { exitCodes } from "../process/program.ts";
import { storageSchema } from "../config/sections/server.ts";
import { StorageUnavailable } from "../store/errors.ts";
import { openPlace } from "../store/postgres/connection/copy-place.ts";
import { copyDatabase, type CopyPlace, CopyRefused } from "../store/repositories/copy-database.ts";
import { openFile } from "../store/sqlite/connection/copy-place.ts";
import { CommandError, reasonOf, UsageError, type Command, type CommandIo } from "./command.ts";
import { exitCodeHelp } from "./program.ts";

interface CopyTyped {
  readonly from?: string;
  readonly to?: string;
}

export const copyCommand: Command = (made, { io, action }) => {
  made
    .description(
      "Copies all data of a gateway's database into an empty one. A URL is sqlite:PATH or " +
        "postgres://USER:PASSWORD@HOST:PORT/DATABASE. Stop the gateways of both databases first: " +
        "the command refuses databases that are in use. A copy that is interrupted leaves the " +
        "target empty. The source must have the schema of this version, and is not changed.\n\nThe " +
        "pepper is not in the database. Give the gateways of the copy the same auth.peppers, or " +
        "set it to the content of the data directory's file `pepper`. Keep the data directory, " +
        "which may hold calls that are not in the database yet.\n\nThe URLs can also be in " +
        "SLUICE_COPY_FROM and SLUICE_COPY_TO, so that other users of the machine do not see the " +
        "passwords.",
    )
    .option("--from <url>", "The database to copy.")
    .option("--to <url>", "An empty database.")
    .addHelpText("after", exitCodeHelp("copied", "not copied"))
    .action(action((options: CopyTyped) => copy(options, io)));
};

async function copy(values: CopyTyped, io: CommandIo): Promise<number> {
  const { variables } = io.environment;
  const from = readUrl("--from", values.from ?? variables["SLUICE_COPY_FROM"]);
  const to = readUrl("--to", values.to ?? variables["SLUICE_COPY_TO"]);
  try {
    await using source = await open(from, { isCreating: false });
    await using target = await open(to, { isCreating: true });
    io.report(`copying ${source.name} as it is now to ${target.name}`);
    const { signal } = io;
    const onCopied = (table: string, rows: number): void => io.print(`${table}: ${rows}`);
    await copyDatabase({ source, target, signal, onCopied });
    io.report(`${target.name} is a complete copy. Give its gateways the same pepper.`);
    return exitCodes.ok;
  } catch (error) {
    const isKnown = error instanceof CopyRefused || error instanceof StorageUnavailable;
    throw isKnown ? new CommandError(`not copied: ${reasonOf(error)}`) : error;
  }
}

type Storage = ReturnType<typeof storageSchema.parse>;

function readUrl(option: string, text: string | undefined): Storage {
  if (text === undefined) throw new UsageError(`name the database: ${option} URL`);
  const storage = storageSchema.safeParse({ url: text }).data;
  if (storage === undefined) {
    throw new UsageError(`${option} takes sqlite:PATH or postgres://..., not '${shown(text)}'`);
  }
  return storage;
}

function shown(text: string): string {
  return URL.canParse(text) && text.includes("://") ? nameOfDatabase(text) : text;
}

function open(
  storage: Storage,
  options: { readonly isCreating: boolean },
): CopyPlace | Promise<CopyPlace> {
  return storage.backend === "sqlite"
    ? openFile(storage.path, options)
    : openPlace(storage.url.reveal(), options);
}
