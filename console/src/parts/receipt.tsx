import type { Applied } from "../api/contract.ts";
import { Button } from "./button.tsx";
import { Note } from "./error-note.tsx";
import { Snippet } from "./snippets.tsx";

/** Which processes have a change of keys already, and what to do about the others. */
export function Receipt({
  applied,
  done,
  hints = [],
  onAskAgain,
  isAsking,
}: {
  readonly applied: Applied;
  /** What those that have it do: "refuse it". */
  readonly done: string;
  /** First characters of the secrets that a proxy can refuse meanwhile. */
  readonly hints?: readonly string[];
  readonly onAskAgain?: () => unknown;
  readonly isAsking?: boolean;
}) {
  const { processes, of, silent } = applied;
  const isWhole = processes === of && silent === 0;
  const rest = !isWhole && (
    <>
      <p>
        {silent > 0 && `${silent} more gave no sign for 10 s. `}
        Those that do not have the change may accept the key until auth.snapshot_max_age is over (15
        minutes by default). The page Gateways names them. A proxy can refuse it meanwhile:
      </p>
      {hints.length > 0 && <Snippet text={proxyRule(hints)} what="the rule for nginx" />}
      {onAskAgain !== undefined && (
        <Button isBusy={isAsking === true} onPress={onAskAgain}>
          Ask again
        </Button>
      )}
    </>
  );
  return (
    <Note tone={isWhole ? "ok" : "warn"} more={rest}>
      {processes} of {of} gateways {done}.
    </Note>
  );
}

function proxyRule(hints: readonly string[]): string {
  return hints.map((hint) => `if ($http_authorization ~ "${hint}_") { return 401; }`).join("\n");
}
