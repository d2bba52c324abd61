import { useState } from "react";
import type { Choices } from "../../api/contract.ts";
import { addressOf } from "../../api/endpoints.ts";
import { useChoices } from "../../api/use-read.ts";
import { Button } from "../../parts/button.tsx";
import { Chip } from "../../parts/chip.tsx";
import { Ask, useClose } from "../../parts/dialog.tsx";
import { Field, namedOptions, type Option, optionsOf, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { type Range, useRange } from "../../parts/range-picker.tsx";
import { useSeesAll } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";
import { outcomes, outcomeText } from "../calls/call-words.tsx";
import { keyName } from "../keys/key-words.tsx";

/** What calls are filtered and usage is grouped by, as the address has it. */
export const dimensions = {
  account: "Account",
  environment: "Environment",
  application: "Application",
  key: "Key",
  model: "Model",
  target: "Target",
  dialect: "API",
  outcome: "Outcome",
  status: "Status",
  code: "Error code",
  class: "Capacity",
  end_user: "End user",
  tag: "Tag",
} as const;
export type Dimension = keyof typeof dimensions;
export type FilterValues = Readonly<Record<Dimension, string>>;

// They are the keys of the object.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const allDimensions = Object.keys(dimensions) as Dimension[];
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const noFilters = Object.fromEntries(allDimensions.map((name) => [name, ""])) as FilterValues;

/** Users of an account see that one alone, and no targets. */
export function useDimensions(): readonly Dimension[] {
  const seesAll = useSeesAll();
  return allDimensions.filter((name) => seesAll || (name !== "account" && name !== "target"));
}

export interface Filters {
  readonly values: FilterValues;
  readonly range: Range;
  /** As the admin API takes them. */
  readonly parameters: Readonly<Record<string, string | undefined>>;
  /** Those that are set, for the address. */
  readonly set: Readonly<Record<string, string>>;
  readonly isAny: boolean;
  readonly change: (changed: Partial<FilterValues>) => void;
  readonly clear: () => void;
}

export function useFilters(): Filters {
  const [values, change] = useUrl(noFilters);
  const range = useRange();
  const { account, application, key, ...others } = values;
  const set = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
  return {
    values,
    range,
    parameters: {
      ...range,
      ...others,
      account_id: account,
      application_id: application,
      key_id: key,
    },
    set,
    isAny: Object.keys(set).length > 0,
    change,
    clear: () => change(noFilters),
  };
}

/** The filters in force, each of which can be taken away, and a dialog to set them. */
export function FilterBar({
  filters,
  shown,
}: {
  readonly filters: Filters;
  /** Those that the view takes; default: all. */
  readonly shown?: readonly Dimension[];
}) {
  const offered = useDimensions().filter((name) => shown?.includes(name) !== false);
  const { values } = filters;
  const set = offered.filter((name) => values[name] !== "");
  // Only of these the name is not the value.
  const named = set.flatMap((name) => listsOf[name] ?? []);
  const choices = useChoices(named, { account_id: values.account }, { isOff: named.length === 0 });
  const known = optionsFrom(choices.data ?? {});
  return (
    <div className="row" role="group" aria-label="Filters">
      <Ask text="Filter...">
        <FilterDialog filters={filters} names={offered} />
      </Ask>
      {set.map((name) => (
        <Chip
          param={name}
          key={name}
          name={dimensions[name]}
          text={known[name]?.find(({ value }) => value === values[name])?.label}
        />
      ))}
      {set.length > 1 && (
        <Button look="quiet" onPress={filters.clear}>
          Remove all
        </Button>
      )}
    </div>
  );
}

type Options = Partial<Record<Dimension, readonly Option[]>>;

const listsOf: Partial<Record<Dimension, keyof Choices>> = {
  account: "accounts",
  application: "applications",
  key: "keys",
};

/** What filters can be set to. */
function optionsFrom(choices: Partial<Choices>): Options {
  const { accounts = [], applications = [], keys = [], models = [] } = choices;
  return {
    account: namedOptions(accounts),
    environment: namesOf(models.map(({ environment }) => environment)),
    application: applications.map(({ id, name, environment }) => ({
      value: id,
      label: `${name} (${environment})`,
    })),
    key: keys.map((key) => ({ value: key.id, label: `${keyName(key)} of ${key.application}` })),
    model: namesOf(models.map(({ alias }) => alias)),
    dialect: optionsOf(["chat", "responses", "messages", "embeddings"]),
    outcome: outcomes.map((value) => ({ value, label: outcomeText(value) })),
    class: optionsOf(["on-demand", "provisioned", "spillover"]),
  };
}

function FilterDialog({
  filters,
  names,
}: {
  readonly filters: Filters;
  readonly names: readonly Dimension[];
}) {
  const close = useClose();
  const [values, setValues] = useState(filters.values);
  const scope = { account_id: values.account, application_id: values.application };
  const known = optionsFrom(
    useChoices(["accounts", "applications", "keys", "models"], scope).data ?? {},
  );
  const submit = (): void => {
    filters.change(values);
    close();
  };
  return (
    <FormDialog
      title="Filter"
      submit="Show these"
      isRunning={false}
      failure={undefined}
      onSubmit={submit}
    >
      <div className="grid tiles">
        {names.map((name) => {
          const options = known[name];
          const field = { label: dimensions[name], value: values[name] };
          const onChange = (value: string) => setValues({ ...values, [name]: value.trim() });
          return options === undefined ? (
            <Field key={name} {...field} onChange={onChange} hint={hints[name]} />
          ) : (
            <Select
              key={name}
              {...field}
              onChange={onChange}
              options={[{ value: "", label: "Any" }, ...withCurrent(options, values[name])]}
            />
          );
        })}
      </div>
    </FormDialog>
  );
}

const hints: Partial<Record<Dimension, string>> = {
  status: "Such as 429",
  code: "Such as rate_limit_exceeded",
  target: "upstream/identifier",
  end_user: "Such as eu_4xT0...",
  tag: "Such as team=search",
};

function namesOf(names: readonly string[]): readonly Option[] {
  return optionsOf([...new Set(names)]);
}

/** A filter stays selected, also before its list is there and beyond its end. */
function withCurrent(options: readonly Option[], value: string): readonly Option[] {
  if (value === "" || options.some((option) => option.value === value)) return options;
  return [{ value, label: value }, ...options];
}

/** Downloads of the calls that fit, without a limit. */
export function ExportLinks({ filters }: { readonly filters: Filters }) {
  const address = (format: string): string =>
    addressOf("/usage/export", { ...filters.parameters, format });
  return (
    <>
      <a className="button plain" href={address("csv")} download>
        Export calls (CSV)
      </a>
      <a className="button plain" href={address("ndjson")} download>
        Export calls (NDJSON)
      </a>
    </>
  );
}
