import { Argument } from "commander";
import { exitCodes } from "../../process/exit-codes.ts";
import type { Command } from "../command.ts";
import { completionScript, shells, type Shell } from "./shell-scripts.ts";

export const completionCommand: Command = (made, run) => {
  made
    .description(
      "Prints a completion script for the shell. It completes `sluice`, which `npm link` installs.",
    )
    .addArgument(new Argument("<shell>").choices(shells))
    .addHelpText(
      "after",
      `
  bash   sluice completion bash > ~/.local/share/bash-completion/completions/sluice
  zsh    sluice completion zsh > "\${fpath[1]}/_sluice"
  fish   sluice completion fish > ~/.config/fish/completions/sluice.fish

Exit code: 0 done, 2 wrong usage.`,
    )
    .action(
      run.action(async (shell: Shell) => {
        run.io.print(completionScript(shell, await run.wholeProgram()));
        return exitCodes.ok;
      }),
    );
};
