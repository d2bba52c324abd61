import type {
  Block,
  ResultContent,
  TextBlock,
  ToolResultBlock,
  Turn,
} from "../../domain/chat/conversation.ts";

export interface ChatTurns {
  readonly turns: readonly Turn[];
  /** Whether images or files of results follow them. */
  readonly hasMoved: boolean;
}

/**
 * Turns of another wire as chat can say them. Neighbours of one role are one turn, since the results
 * of calls must follow the message with the calls. OpenAI takes texts alone in results, so their
 * images and files become the user's, after all results of the turn. Chat callers' own are sent as
 * they are.
 */
export function asChatTurns(turns: readonly Turn[]): ChatTurns {
  let count = 0;
  const said = joined(turns).map((turn): Turn => {
    if (turn.role !== "user" || !turn.blocks.some(isResult)) return turn;
    const moved: Block[] = [];
    const results = turn.blocks.filter(isResult).map((result) => {
      const content = asError(result).map((block): ResultContent => {
        const what = nameOf(block);
        if (what === undefined) return block;
        count += 1;
        const label = `tool ${what} ${count}`;
        const { at } = block;
        moved.push({ type: "text", text: `[${label}:]`, at }, block);
        return { type: "text", text: `[This ${what} follows the tool results as ${label}.]`, at };
      });
      return { ...result, content };
    });
    const others = turn.blocks.filter((block) => !isResult(block));
    return { ...turn, blocks: [...results, ...moved, ...others] };
  });
  return { turns: said, hasMoved: count > 0 };
}

/** Neighbours of the same role as one turn, in new lists. */
function joined(turns: readonly Turn[]): readonly Turn[] {
  const all: Turn[] = [];
  let blocks: Block[] = [];
  for (const turn of turns) {
    const isApart = turn.role === "system" || turn.role === "developer";
    if (isApart || all.at(-1)?.role !== turn.role) {
      blocks = [];
      all.push({ ...turn, blocks });
    }
    for (const block of turn.blocks) blocks.push(inWords(block));
  }
  return all;
}

/** Of a block that only its own wire knows, what it tells a model. */
function inWords<Known extends Block>(block: Known): Known | TextBlock {
  if (block.type !== "foreign" || block.text === undefined) return block;
  return { type: "text", text: block.text, at: block.at };
}

export function isResult(block: Block): block is ToolResultBlock {
  return block.type === "tool-result";
}

/** The content of a result. OpenAI's wires cannot say that a tool failed, but its text can. */
export function asError({
  content: sent,
  isError,
  at: path,
}: ToolResultBlock): readonly ResultContent[] {
  const content = sent.map(inWords);
  if (isError !== true) return content;
  const at = content.findIndex(({ type }) => type === "text");
  const first = content[at];
  if (first?.type !== "text") return [{ type: "text", text: "Error", at: path }, ...content];
  if (/^\s*error:/i.test(first.text)) return content;
  return content.with(at, { ...first, text: `Error: ${first.text}` });
}

/** What is moved is called so. Undefined: it stays. */
function nameOf(block: ResultContent): "image" | "file" | undefined {
  if (block.type === "image") return "image";
  return block.type === "document" && block.text === undefined ? "file" : undefined;
}

/** Whether it tells nothing to a wire that does not know the block. */
export function isLost(block: Block | ResultContent): boolean {
  if (block.type === "tool-result") return block.content.some(isLost);
  return block.type === "foreign" && block.text === undefined;
}
