import { publishedSchema } from "./documents/published-schema.ts";
import {
  type ReferenceRow,
  type ReferenceSection,
  referenceSections,
} from "./documents/config-reference.ts";

/** Writes `sluice.schema.json` and the reference of the documentation from the schema. */

const begin = "<!-- reference: begin -->";
const end = "<!-- reference: end -->";

export const schemaFile = new URL("../sluice.schema.json", import.meta.url);
export const documentationFile = new URL("../docs/configuration-reference.md", import.meta.url);

export function schemaText(): string {
  return `${JSON.stringify(publishedSchema(), null, 2)}\n`;
}

/** Replaces the reference in the documentation. */
export function withReference(documentation: string): string {
  const from = documentation.indexOf(begin);
  const to = documentation.indexOf(end);
  if (from < 0 || to < from) throw new Error("docs/configuration-reference.md has lost its marks");
  const reference = referenceSections().map(formatSection).join("\n");
  return `${documentation.slice(0, from)}${begin}\n\n${reference}\n${documentation.slice(to)}`;
}

function formatSection(section: ReferenceSection): string {
  // A section of a single key has its meaning in its item.
  const about = section.rows[0]?.key === section.key ? "" : `${section.about}\n\n`;
  return `## \`${section.key}\`\n\n${about}${section.rows.map(formatRow).join("\n")}\n`;
}

/** An item of a list, which can be as long as it needs to be. */
function formatRow({ key, type, initial, about }: ReferenceRow): string {
  const defaults = initial.startsWith("required")
    ? `, ${initial}`
    : ({ none: "" }[initial] ?? `, default ${initial}`);
  return wrapped(`- \`${key}\` (${type}${defaults}): ${about}`);
}

/** No line begins with what Markdown would take for another item. */
function wrapped(item: string): string {
  const lines = [""];
  for (const word of item.split(/ (?!(?:\d+[.)]|[-+*])(?:[ `]|$))/)) {
    const line = lines.at(-1) ?? "";
    if (line !== "" && line.length + 1 + word.length > 120) lines.push(`  ${word}`);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines.join("\n");
}

if (import.meta.main) {
  await Bun.write(schemaFile, schemaText());
  await Bun.write(documentationFile, withReference(await Bun.file(documentationFile).text()));
}
