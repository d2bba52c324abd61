import { publishedSchema } from "../src/config/json-schema.ts";
import { type ReferenceSection, referenceSections } from "../src/config/reference.ts";

/** Writes `sluice.schema.json` and the tables of the documentation from the schema. */

const begin = "<!-- reference: begin -->";
const end = "<!-- reference: end -->";

export const schemaFile = new URL("../sluice.schema.json", import.meta.url);
export const documentationFile = new URL("../docs/configuration.md", import.meta.url);

export function schemaText(): string {
  return `${JSON.stringify(publishedSchema(), null, 2)}\n`;
}

/** Replaces the reference in the documentation. */
export function withReference(documentation: string): string {
  const from = documentation.indexOf(begin);
  const to = documentation.indexOf(end);
  if (from < 0 || to < from) throw new Error("docs/configuration.md has lost its marks");
  const reference = referenceSections().map(formatSection).join("\n");
  return `${documentation.slice(0, from)}${begin}\n\n${reference}\n${documentation.slice(to)}`;
}

function formatSection(section: ReferenceSection): string {
  const head = ["key", "type", "default", "meaning"];
  const rows = section.rows.map(({ key, type, initial, about }) => [
    `\`${key}\``,
    type,
    initial,
    about.replaceAll("|", "\\|"),
  ]);
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((cells) => cells[column]?.length ?? 0)),
  );
  const format = (cells: readonly string[], fill: string) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0, fill)).join(" | ")} |`;
  const lines = [
    format(head, " "),
    format(
      head.map(() => ""),
      "-",
    ),
    ...rows.map((cells) => format(cells, " ")),
  ];
  // A section of a single key has its meaning in its row.
  const about = section.rows[0]?.key === section.key ? "" : `${section.about}\n\n`;
  return `### \`${section.key}\`\n\n${about}${lines.join("\n")}\n`;
}

if (import.meta.main) {
  await Bun.write(schemaFile, schemaText());
  await Bun.write(documentationFile, withReference(await Bun.file(documentationFile).text()));
}
