import { useState } from "react";
import type { ApplicationView, KeyView } from "../../api/contract.ts";
import { addressOf } from "../../api/endpoints.ts";
import { useList, useRead } from "../../api/use-read.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, type Option, Select } from "../../parts/field.tsx";
import { Form } from "../../parts/form.tsx";
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
  names: shown,
}: {
  readonly filters: Filters;
  /** Those that the view takes; default: all. */
  readonly names?: readonly Dimension[];
}) {
  const [isOpen, setOpen] = useState(false);
  const known = useOptions(filters.values, false);
  const offered = useDimensions().filter((name) => shown?.includes(name) !== false);
  const names = offered.filter((name) => filters.values[name] !== "");
  const textOf = (name: Dimension): string => {
    const [value, options = []] = [filters.values[name], known[name]];
    return `${dimensions[name]}: ${options.find((each) => each.value === value)?.label ?? value}`;
  };
  return (
    <div className="row" role="group" aria-label="Filters">
      <Button onPress={() => setOpen(true)}>Filter...</Button>
      {names.map((name) => (
        <Button
          key={name}
          look="quiet"
          aria-label={`Remove the filter ${textOf(name)}`}
          onPress={() => filters.change({ [name]: "" })}
        >
          {textOf(name)} <span aria-hidden="true">✕</span>
        </Button>
      ))}
      {names.length > 1 && (
        <Button look="quiet" onPress={filters.clear}>
          Remove all
        </Button>
      )}
      {isOpen && <FilterDialog filters={filters} names={offered} onClose={() => setOpen(false)} />}
    </div>
  );
}

const mostOptions = 500;

type Options = Partial<Record<Dimension, readonly Option[]>>;

/** What filters can be set to. Lists are asked for when the dialog or the name of a value needs them. */
function useOptions(values: FilterValues, isAll: boolean): Options {
  const scope = { limit: mostOptions, account_id: values.account };
  const isOff = (name: Dimension): boolean => !isAll && values[name] === "";
  const isNoAccount = !useSeesAll() || isOff("account");
  const accounts = useList("/accounts", { limit: mostOptions }, { isOff: isNoAccount });
  const applications = useList("/applications", scope, { isOff: isOff("application") });
  const ofKeys = { ...scope, application_id: values.application };
  const keys = useList("/keys", ofKeys, { isOff: isOff("key") });
  const models = useRead("/models", {}, { isOff: !isAll }).data?.data ?? [];
  return {
    account: accounts.query.data?.map(({ id, name }) => ({ value: id, label: name })) ?? [],
    environment: namesOf(models.map(({ environment }) => environment)),
    application: applications.query.data?.map(applicationOption) ?? [],
    key: keys.query.data?.map(keyOption) ?? [],
    model: namesOf(models.map(({ alias }) => alias)),
    dialect: namesOf(["chat", "responses", "messages", "embeddings"]),
    outcome: outcomes.map((value) => ({ value, label: outcomeText(value) })),
    class: namesOf(["on-demand", "provisioned", "spillover"]),
  };
}

function FilterDialog({
  filters,
  names,
  onClose,
}: {
  readonly filters: Filters;
  readonly names: readonly Dimension[];
  readonly onClose: () => void;
}) {
  const [values, setValues] = useState(filters.values);
  const known = useOptions(values, true);
  const submit = (): void => {
    filters.change(values);
    onClose();
  };
  return (
    <Dialog title="Filter" onClose={onClose}>
      <Form
        submit="Show these"
        isRunning={false}
        failure={undefined}
        onSubmit={submit}
        onCancel={onClose}
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
      </Form>
    </Dialog>
  );
}

const hints: Partial<Record<Dimension, string>> = {
  status: "Such as 429",
  code: "Such as rate_limit_exceeded",
  target: "upstream/identifier",
};

function namesOf(names: readonly string[]): readonly Option[] {
  return [...new Set(names)].map((value) => ({ value, label: value }));
}

function applicationOption({ id, name, environment }: ApplicationView): Option {
  return { value: id, label: `${name} (${environment})` };
}

function keyOption(key: KeyView): Option {
  return { value: key.id, label: `${keyName(key)} of ${key.application}` };
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
