import { useState } from "react";
import { useUrl } from "../url.ts";
import { Closing, useClose } from "./dialog.tsx";
import { Field, Select } from "./field.tsx";
import { FormDialog, useDraft } from "./form.tsx";
import { instantText } from "./time.tsx";

const presets = [
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
  { value: "month", label: "This month (UTC)" },
] as const;
const custom = "custom";

/** A range of time as the API takes it: half-open, `until` absent for now. */
export interface Range {
  readonly since: string;
  readonly until?: string;
}

/**
 * The range that the address names: a preset, `2027-01-01..2027-01-07`, days in UTC, or two
 * instants, the second excluded.
 */
export function useRange(initial = "24h"): Range {
  const [{ range }] = useUrl({ range: initial });
  return readRange(range, initial);
}

const unitsMs = new Map([
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** Milliseconds. */
export function lengthOf({ since, until }: Range): number {
  const [, count = "", unit = ""] = /^(\d+)([mhd])$/.exec(since) ?? [];
  if (count !== "") return Number(count) * (unitsMs.get(unit) ?? 0);
  return (until === undefined ? Date.now() : Date.parse(until)) - Date.parse(since);
}

/** As it is in the address. */
export function rangeOf(from: number, to: number): string {
  return [from, to]
    .map((at) => new Date(at).toISOString().replace(/(:00)?\.\d+Z$/, "Z"))
    .join("..");
}

const instants = /^(\d{4}-\d\d-\d\dT[\d:]{5,8}Z)\.\.(\d{4}-\d\d-\d\dT[\d:]{5,8}Z)$/;

function readRange(text: string, initial: string): Range {
  if (text === "month") return { since: `${new Date().toISOString().slice(0, 7)}-01T00:00:00Z` };
  const [, since, until] = instants.exec(text) ?? [];
  if (since !== undefined && until !== undefined) return { since, until };
  const [, first, last] = /^(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)$/.exec(text) ?? [];
  if (first === undefined || last === undefined) {
    return { since: /^\d{1,3}[mhd]$/.test(text) ? text : initial };
  }
  const end = new Date(`${last}T00:00:00Z`);
  end.setUTCDate(end.getUTCDate() + 1);
  return { since: `${first}T00:00:00Z`, until: end.toISOString() };
}

/** Chooses the range, which is in the address, so that all pages share it. */
export function RangePicker({ initial = "24h" }: { readonly initial?: string }) {
  const [{ range }, change] = useUrl({ range: initial });
  const [isOpen, setOpen] = useState(false);
  const isPreset = presets.some(({ value }) => value === range);
  const options = [
    ...presets,
    ...(isPreset ? [] : [{ value: range, label: labelOf(range) }]),
    { value: custom, label: "Other days..." },
  ];
  return (
    <>
      <Select
        label="Range"
        isLabelHidden
        value={range}
        options={options}
        onChange={(value) => (value === custom ? setOpen(true) : change({ range: value }))}
      />
      {isOpen && (
        <Closing value={() => setOpen(false)}>
          <DaysDialog onChosen={(days) => change({ range: days })} />
        </Closing>
      )}
    </>
  );
}

function labelOf(range: string): string {
  const [, ...ends] = instants.exec(range) ?? [];
  return ends.length > 0 ? ends.map(instantText).join(" to ") : range.replace("..", " to ");
}

function DaysDialog({ onChosen }: { readonly onChosen: (days: string) => void }) {
  const close = useClose();
  const { draft, bind } = useDraft({ first: "", last: "" });
  const { first, last } = draft;
  const choose = (): void => {
    if (first > last) return;
    onChosen(`${first}..${last}`);
    close();
  };
  return (
    <FormDialog
      title="Choose days"
      submit="Show these days"
      isRunning={false}
      failure={undefined}
      onSubmit={choose}
    >
      <p className="muted">Days are in UTC, as the sums of the usage are.</p>
      <Field {...bind("first")} label="First day" type="date" isRequired />
      <Field {...bind("last")} label="Last day" type="date" min={first} isRequired />
    </FormDialog>
  );
}
