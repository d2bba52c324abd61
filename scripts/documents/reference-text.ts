import type { ReferenceEntry } from "./config-reference.ts";

const width = 120;
/** So many keys that an earlier map has too are a reference to it. */
const leastRepeated = 3;

/** Meanings of keys that a map has, by the text of their item, with the path of the map. */
type Written = Map<string, string>;

/** A heading for each first key of the file, and a list that is nested as the file is. */
export function referenceText(sections: readonly ReferenceEntry[]): string {
  const written: Written = new Map();
  return sections.map((section) => sectionText(section, written)).join("\n");
}

function sectionText(section: ReferenceEntry, written: Written): string {
  const { key, entries } = section;
  const heading = `## \`${key.replace(/(?:\[\]|\.<name>)$/, "")}\`\n\n`;
  if (entries.length === 0) return `${heading}${itemOf([section], 0)}\n`;
  return `${heading}${wrapped(section.about, 0)}\n\n${listOf(entries, { path: key, depth: 0, written })}\n`;
}

interface Place {
  readonly path: string;
  readonly depth: number;
  readonly written: Written;
}

/** First the keys of all kinds, then those of one kind below its name. */
function listOf(entries: readonly ReferenceEntry[], place: Place): string {
  const kinds = [...new Set(entries.flatMap(({ kind }) => (kind === undefined ? [] : [kind])))];
  const shared = entries.filter(({ kind }) => kind === undefined);
  const ofKinds = kinds.flatMap((kind) => [
    wrapped(`${indentOf(place.depth)}- Only with \`kind: ${kind}\`:`, place.depth),
    itemsOf(
      entries.filter((entry) => entry.kind === kind),
      { ...place, depth: place.depth + 1 },
    ),
  ]);
  return [...(shared.length === 0 ? [] : [itemsOf(shared, place)]), ...ofKinds].join("\n");
}

function itemsOf(entries: readonly ReferenceEntry[], place: Place): string {
  const items: string[] = [];
  let rest = entries;
  for (let [first] = rest; first !== undefined; [first] = rest) {
    const run = runOf(first, rest, place);
    items.push(run.earlier === undefined ? itemOf(run.entries, place.depth) : asIn(run, place));
    if (run.earlier === undefined && first.entries.length > 0) {
      const path = `${place.path}.${first.key}`;
      items.push(listOf(first.entries, { ...place, path, depth: place.depth + 1 }));
    }
    for (const entry of run.entries) {
      const signature = signatureOf(entry);
      if (!place.written.has(signature)) place.written.set(signature, place.path);
    }
    rest = rest.filter((entry) => !run.entries.includes(entry));
  }
  return items.join("\n");
}

interface Run {
  readonly entries: readonly ReferenceEntry[];
  /** The path of the map that has all of them, too. */
  readonly earlier: string | undefined;
}

/** The keys that one item can name with the first. */
function runOf(
  first: ReferenceEntry,
  entries: readonly ReferenceEntry[],
  { path, written }: Place,
): Run {
  const alike =
    first.entries.length > 0 ? [first] : entries.filter((entry) => tailOf(entry) === tailOf(first));
  const earlier = written.get(signatureOf(first));
  const repeated = entries.filter((entry) => written.get(signatureOf(entry)) === earlier);
  const isRepeated = earlier !== undefined && earlier !== path && repeated.length > alike.length;
  return isRepeated && repeated.length >= leastRepeated
    ? { entries: repeated, earlier }
    : { entries: alike, earlier: undefined };
}

function asIn({ entries, earlier }: Run, { depth }: Place): string {
  const keys = entries.map(({ key }) => `\`${key}\``).join(", ");
  return wrapped(`${indentOf(depth)}- ${keys}: as in \`${earlier}\`.`, depth);
}

function itemOf(entries: readonly ReferenceEntry[], depth: number): string {
  const [first] = entries;
  if (first === undefined) return "";
  const initial = first.initial === undefined ? "" : `: ${first.initial}`;
  const shown = first.entries.length > 0 ? "" : initial;
  const keys = entries.map(({ key }) => `\`${key}${shown}\``).join(", ");
  return wrapped(`${indentOf(depth)}- ${keys}${tailOf(first)}`, depth);
}

/** What an item says behind its key: the form of the value, and its meaning. */
function tailOf(entry: ReferenceEntry): string {
  const forms = formsOf(entry);
  return `${forms.length === 0 ? "" : ` (${forms.join(", ")})`}: ${entry.about}`;
}

function formsOf(entry: ReferenceEntry): readonly string[] {
  const { type, initial, range, isRequired, entries } = entry;
  const hasChoices = type.includes("|");
  // A default or a range shows the type; without them, a text needs no word.
  const isShown =
    initial === undefined && range === undefined && entries.length === 0 && type !== "text";
  return [
    ...(isRequired ? ["required"] : []),
    ...(hasChoices ? [`\`${type}\``] : isShown ? [type] : []),
    ...(range === undefined ? [] : [range]),
    ...Object.entries(entry.initialOf).map(([kind, value]) => `\`${kind}\`: ${value}`),
  ];
}

/** Equal for keys of equal name, form, meaning and members. */
function signatureOf(entry: ReferenceEntry): string {
  return JSON.stringify({ ...entry, kind: undefined });
}

function indentOf(depth: number): string {
  return "  ".repeat(depth);
}

/** No line begins with what Markdown would take for another item. */
function wrapped(item: string, depth: number): string {
  const indent = indentOf(depth);
  const hanging = item.trim().startsWith("- ") ? `${indent}  ` : indent;
  const lines = [indent];
  for (const word of item.trim().split(/ (?!(?:\d+[.)]|[-+*])(?:[ `]|$))/)) {
    const line = lines.at(-1) ?? "";
    if (line.trim() === "") lines[lines.length - 1] = `${line}${word}`;
    else if (line.length + 1 + word.length > width) lines.push(`${hanging}${word}`);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines.join("\n");
}
