import { usualConfigPaths } from "../config/environment.ts";
import { formatProblems, parseConfig } from "../config/load.ts";
import { priceNotices } from "../config/prices/effective-prices.ts";
import { checkWarnings } from "../config/problems/warnings.ts";
import { exitCodes } from "../process/program.ts";
import { UsageError, type Command, type CommandIo } from "./command.ts";
import { exitCodeHelp } from "./program.ts";
import { readConfigFile } from "./read-input.ts";

export const checkConfigCommand: Command = (made, { io, action }) => {
  made
    .description("Checks a configuration file without starting anything.")
    .argument("[file]", "Default: SLUICE_CONFIG, else ./sluice.yaml, else /etc/sluice/sluice.yaml.")
    .option("-c, --config <file>", "The same as FILE, as other commands take it.")
    .option(
      "--json",
      'Print {"ok": ..., "problems": [...], "warnings": [...], "notices": [...]} instead of text.',
    )
    .addHelpText("after", exitCodeHelp("the file is good", "it has problems"))
    .action(
      action((file: string | undefined, { config, json }: { config?: string; json?: true }) => {
        if (file !== undefined && config !== undefined) {
          throw new UsageError("name one file to check");
        }
        return checkFile(file ?? config ?? io.environment.configPath, json === true, io);
      }),
    );
};

function checkFile(path: string | undefined, isJson: boolean, io: CommandIo): number {
  if (path === undefined) {
    throw new UsageError(`name the file to check: there is no ${usualConfigPaths.join(", nor ")}`);
  }
  const env = io.environment.variables;
  const result = parseConfig(readConfigFile(path), { name: path, env });
  const problems = result.ok ? [] : result.problems;
  const warnings = result.ok ? checkWarnings(result.config, io.clock.now()) : [];
  const notices = result.ok ? priceNotices(result.config, io.clock.now()) : [];
  if (isJson) {
    io.print(JSON.stringify({ ok: result.ok, problems, warnings, notices }));
  } else if (result.ok) {
    io.print(`${path}: good`);
    for (const warning of warnings) io.report(`warning: ${warning}`);
    for (const notice of notices) io.report(`notice: ${notice}`);
  } else io.report(formatProblems(path, problems));
  return result.ok ? exitCodes.ok : exitCodes.failed;
}
