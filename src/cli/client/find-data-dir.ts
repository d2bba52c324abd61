import { demoDataDir } from "../../config/demo.ts";
import { CommandError, type CommandIo } from "../command.ts";
import type { SettingsArguments } from "../serve/load-settings.ts";

/**
 * The data directory of the gateway on this machine. Needs neither its variables nor a valid file,
 * beyond `data_dir`. `advice`: how else to name the gateway, for an error.
 */
export async function findDataDir(
  { config, "data-dir": named }: SettingsArguments,
  { environment }: Pick<CommandIo, "environment">,
  advice: string,
): Promise<string> {
  if (named !== undefined) return named;
  const path = config ?? environment.configPath;
  if (path === undefined) return demoDataDir;
  // Few commands need these modules.
  const { readConfigFile } = await import("../serve/read-config-file.ts");
  const { readDataDir } = await import("../../config/read-data-dir.ts");
  const found = readDataDir(
    readText(() => readConfigFile(path), advice),
    environment.variables,
  );
  if (found !== undefined) return found;
  throw new CommandError(
    `${path}: data_dir cannot be read, so the running gateway cannot be found. ${advice} ` +
      `\`sluice check-config ${path}\` shows what is wrong with the file.`,
  );
}

function readText(read: () => string, advice: string): string {
  try {
    return read();
  } catch (error) {
    throw error instanceof CommandError ? new CommandError(`${error.message}. ${advice}`) : error;
  }
}
