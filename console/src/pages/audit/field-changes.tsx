import type { AuditEntryView } from "../../api/contract.ts";
import { exactText } from "../../parts/numbers.tsx";
import { Time } from "../../parts/time.tsx";

type Fields = NonNullable<AuditEntryView["before"]>;
type Value = Fields[string] | undefined;

/** As many as a row shows; the others are behind "more". */
const mostShown = 4;

/** Each field that a change has set, as before and after. */
export function FieldChanges({ entry }: { readonly entry: AuditEntryView }) {
  const [before, after] = [flat(entry.before), flat(entry.after)];
  const isChange = entry.before !== null && entry.after !== null;
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => textOf(before.get(name)) !== textOf(after.get(name)),
  );
  if (changed.length === 0) return <span className="muted">nothing else</span>;
  const isKey = entry.subject.type === "key";
  const noneOf = (name: string): string => (isKey && name.startsWith("limits,") ? "plan" : "none");
  const line = (name: string) => (
    <li key={name}>
      <span className="muted">{name}:</span>{" "}
      {entry.before !== null && (
        <del>
          <Shown value={before.get(name)} none={noneOf(name)} />
        </del>
      )}
      {isChange && " → "}
      {entry.after !== null && (
        <ins>
          <Shown value={after.get(name)} none={noneOf(name)} />
        </ins>
      )}
    </li>
  );
  return (
    <>
      <ul className="changes">{changed.slice(0, mostShown).map(line)}</ul>
      {changed.length > mostShown && (
        <details>
          <summary>{changed.length - mostShown} more</summary>
          <ul className="changes">{changed.slice(mostShown).map(line)}</ul>
        </details>
      )}
    </>
  );
}

/** Values by their names in words; those inside an object have its name before theirs. */
function flat(fields: Fields | null, prefix = ""): Map<string, Value> {
  return new Map(
    Object.entries(fields ?? {}).flatMap(([key, value]): [string, Value][] => {
      const name = prefix + key.replaceAll("_", " ");
      const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
      return isObject ? [...flat(value, `${name}, `)] : [[name, value]];
    }),
  );
}

const instant = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** `none`: what it is called that a field is absent. */
function Shown({ value, none }: { readonly value: Value; readonly none: string }) {
  const isTime = typeof value === "string" && instant.test(value);
  if (isTime) return <Time at={value} />;
  const text = textOf(value);
  return <>{text === "none" ? none : text}</>;
}

/** What is absent, empty or off reads alike: the creation of a thing lists only what it has. */
function textOf(value: Value): string {
  if (value === undefined || value === null || value === "" || value === false) return "none";
  if (typeof value === "number") return exactText(value);
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(textOf).join(", ");
  if (value === true) return "yes";
  return typeof value === "string" ? value : JSON.stringify(value);
}
