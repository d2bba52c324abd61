import { exitCodes } from "../../process/exit-codes.ts";
import { UsageError, type Command, type CommandEntry } from "../command.ts";
import { wordsOf } from "./command-words.ts";
import { completionScript, shells } from "./shell-scripts.ts";

/** `commands`: all commands that a shell can complete. */
export function completionCommand(commands: readonly CommandEntry[]): Command {
  return {
    name: "completion",
    help: () => `Usage: sluice completion ${shells.join("|")}

Prints a completion script for the shell. It completes \`sluice\`, which \`npm link\` installs.

  bash   sluice completion bash > ~/.local/share/bash-completion/completions/sluice
  zsh    sluice completion zsh > "\${fpath[1]}/_sluice"
  fish   sluice completion fish > ~/.config/fish/completions/sluice.fish

Exit code: 0 done, 2 wrong usage.`,
    async run([name, ...others], io) {
      const shell = shells.find((each) => each === name);
      if (shell === undefined || others.length > 0) {
        throw new UsageError(`name one shell: ${shells.join(", ")}`);
      }
      io.print(completionScript(shell, await Promise.all(commands.map(wordsOf))));
      return exitCodes.ok;
    },
  };
}
