import { Argument, type Command as Parser } from "commander";
import { exitCodes } from "../process/exit-codes.ts";
import type { Command } from "./command.ts";

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

export const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** A script that lets a shell complete the words of `sluice`, and file names where no word fits. */
function completionScript(shell: Shell, program: Parser): string {
  const commands = program.commands.map((made) => ({
    ...wordsOf(made),
    summary: made.summary(),
    verbs: made.commands.map(wordsOf),
  }));
  switch (shell) {
    case "bash":
      return bashScript(commands);
    case "zsh":
      return zshScript(commands);
    case "fish":
      return fishScript(commands);
  }
}

interface Words {
  readonly name: string;
  readonly options: readonly string[];
}

interface CommandWords extends Words {
  readonly summary: string;
  readonly verbs: readonly Words[];
}

function wordsOf(made: Parser): Words {
  const options = made.createHelp().visibleOptions(made);
  return { name: made.name(), options: options.flatMap(({ long }) => long ?? []) };
}

function bashScript(commands: readonly CommandWords[]): string {
  return `# bash completion for sluice
_sluice() {
  local current=\${COMP_WORDS[COMP_CWORD]} words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${commandWords(commands)}"
  else
    case "\${COMP_WORDS[1]} $([ "$COMP_CWORD" -gt 2 ] && echo "\${COMP_WORDS[2]}")" in
${caseLines(commands)}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sluice sluice`;
}

function zshScript(commands: readonly CommandWords[]): string {
  return `#compdef sluice
_sluice() {
  local words_of=""
  if (( CURRENT == 2 )); then
    words_of="${commandWords(commands)}"
  else
    local verb=""
    (( CURRENT > 3 )) && verb=\${words[3]}
    case "\${words[2]} $verb" in
${caseLines(commands).replaceAll("words=", "words_of=")}
    esac
  fi
  compadd -- \${=words_of}
  _files
}
if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi`;
}

function fishScript(commands: readonly CommandWords[]): string {
  const lines = commands.flatMap(({ name, summary, options, verbs }) => {
    const ofCommand = `__fish_seen_subcommand_from ${name}`;
    const names = verbs.map((verb) => verb.name);
    const isBare =
      names.length === 0 ? "" : `; and not __fish_seen_subcommand_from ${names.join(" ")}`;
    return [
      `complete -c sluice -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
      ...names.map((verb) => `complete -c sluice -n ${quoted(ofCommand + isBare)} -f -a ${verb}`),
      ...options.map((option) => optionLine(ofCommand + isBare, option)),
      ...verbs.flatMap((verb) => {
        const ofVerb = `${ofCommand}; and __fish_seen_subcommand_from ${verb.name}`;
        return verb.options.map((option) => optionLine(ofVerb, option));
      }),
    ];
  });
  return ["# fish completion for sluice", ...lines].join("\n");
}

function optionLine(condition: string, option: string): string {
  return `complete -c sluice -n ${quoted(condition)} -l ${option.slice(2)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

function commandWords(commands: readonly CommandWords[]): string {
  return [...commands.map(({ name }) => name), "help", "--help", "--version"].join(" ");
}

/** One case for the word after a command, and one for each verb. */
function caseLines(commands: readonly CommandWords[]): string {
  const lines = commands.flatMap(({ name, options, verbs }) => {
    const next = [...verbs.map((verb) => verb.name), ...options];
    return [
      ...verbs.map((verb) => `    "${name} ${verb.name}") words="${verb.options.join(" ")}" ;;`),
      `    "${name} "*) words="${next.join(" ")}" ;;`,
    ];
  });
  return lines.join("\n");
}
