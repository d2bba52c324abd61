/** What may be reported of an exception. Its message may quote a prompt and is left out. */
export interface FailureFacts {
  readonly error: string;
  /** Functions and places in this program, innermost first. */
  readonly positions: readonly string[];
}

const mostPositions = 30;
const frameStart = "    at ";
const plainName = /^[A-Za-z_$][\w$]{0,63}$/;
/**
 * A stack frame of the runtime: `at name (place:line:column)`, `at async name (...)`, `at place`.
 */
const position =
  /^ {4}at (?:(?:async |new )?([\w$.<>[\] ]{1,128}) )?\(?([^()\s]+:\d+(?::\d+)?)\)?$/;

/** Positions are reported relative to this folder; those of an executable already are. */
const programRoot = Bun.isStandaloneExecutable ? "" : new URL("../../", import.meta.url).pathname;

/**
 * The class of an exception and where it was thrown. The message may quote a prompt, starts the
 * stack and may hold lines that look like frames: only frames after it count, and only those in
 * this program, whose folder is `root`.
 */
export function failureFacts(thrown: unknown, root = programRoot): FailureFacts {
  if (!(thrown instanceof Error)) return { error: typeof thrown, positions: [] };
  const { name } = thrown.constructor;
  return { error: plainName.test(name) ? name : "Error", positions: positionsOf(thrown, root) };
}

function positionsOf(error: Error, root: string): string[] {
  const positions: string[] = [];
  for (const line of frameLines(error)) {
    const [, caller, place] = position.exec(line) ?? [];
    const ownPlace = place === undefined ? undefined : placeIn(root, place);
    if (ownPlace === undefined) continue;
    positions.push(caller === undefined ? ownPlace : `${caller} (${ownPlace})`);
    if (positions.length === mostPositions) break;
  }
  return positions;
}

/**
 * The frames at the end of the stack. None if the stack does not start with the error's own name
 * and message: after a change of either, the end of the message is unknown.
 */
function frameLines({ name, message, stack = "" }: Error): readonly string[] {
  const head = message === "" ? name : `${name}: ${message}`;
  if (!stack.startsWith(`${head}\n${frameStart}`)) return [];
  const lines = stack.slice(head.length + 1).split("\n");
  return lines.slice(lines.findLastIndex((line) => !line.startsWith(frameStart)) + 1);
}

function placeIn(root: string, place: string): string | undefined {
  const path = place.startsWith("file://") ? place.slice("file://".length) : place;
  if (path.startsWith(root)) return path.slice(root.length);
  return /^(?:node|bun|native):?[\w/:.]*$/.test(path) ? path : undefined;
}
