import { Link } from "wouter";
import type { ModelView } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Select } from "../../parts/field.tsx";
import { Count } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { type ExampleRequest, greeting, Snippets } from "../../parts/snippets.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { useMayChange } from "../../shell/role.ts";
import { useHref, useUrl } from "../../url.ts";

/** What may I call, and how? */
export function ModelsPage() {
  const [url, change] = useUrl({ environment: "", model: "" });
  const models = useRead("/models");
  return (
    <Page title="Models" question="What may I call, and how?">
      <Loaded query={models}>
        {({ data }) => {
          const environments = [...new Set(data.map(({ environment }) => environment))];
          const rows = data.filter(
            ({ environment }) => url.environment === "" || environment === url.environment,
          );
          const open = rows.find((model) => nameOf(model) === url.model);
          return (
            <>
              {environments.length > 1 && (
                <div className="row">
                  <Select
                    label="Environment"
                    value={url.environment}
                    options={[
                      { value: "", label: "All environments" },
                      ...environments.map((name) => ({ value: name, label: name })),
                    ]}
                    onChange={(environment) => change({ environment })}
                  />
                </div>
              )}
              {rows.length === 0 ? (
                <Empty
                  sentence="No model is configured here."
                  command="sluice check-config sluice.yaml"
                />
              ) : (
                <Table
                  caption="Models"
                  columns={columns.filter(({ isShown }) => isShown(rows))}
                  rows={rows}
                  idOf={nameOf}
                  openId={open === undefined ? undefined : nameOf(open)}
                />
              )}
              {open !== undefined && <HowToCall model={open} />}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function HowToCall({ model }: { readonly model: ModelView }) {
  const { alias, kind, environment } = model;
  const mayTry = useMayChange();
  const href = useHref();
  const own = { model: alias, ...(kind === "embedding" && { view: kind }) };
  return (
    <section className="stack tight" aria-label={`How to call ${alias}`}>
      <div className="row spread">
        <h2>
          {alias} in {environment}
        </h2>
        {mayTry && <ButtonLink href={href("/playground", own)}>Try it</ButtonLink>}
      </div>
      <Snippets environment={environment} request={exampleOf(model)} />
    </section>
  );
}

function exampleOf({ alias, kind }: ModelView): ExampleRequest {
  if (kind === "embedding") {
    return { api: "embeddings", body: { model: alias, input: "Hello!" } };
  }
  return greeting(alias);
}

/** An alias may be in several environments. */
function nameOf({ alias, environment }: ModelView): string {
  return `${environment}/${alias}`;
}

interface ModelColumn extends Column<ModelView> {
  /** Only operators are told of targets, and few models have fallbacks. */
  readonly isShown: (rows: readonly ModelView[]) => boolean;
}

const always = (): boolean => true;

const columns: readonly ModelColumn[] = [
  { title: "Model", cell: (model) => <ModelLink model={model} />, isShown: always },
  { title: "Kind", cell: ({ kind }) => kind, isShown: always },
  {
    title: "Environment",
    cell: ({ environment }) => environment,
    isWideOnly: true,
    isShown: always,
  },
  {
    title: "Window, tokens",
    cell: ({ context_window: size }) => <Count value={size} />,
    isNumber: true,
    isShown: always,
  },
  {
    title: "Longest answer",
    cell: ({ max_output_tokens: most }) => (most === null ? "" : <Count value={most} />),
    isNumber: true,
    isWideOnly: true,
    isShown: always,
  },
  {
    title: "Targets, in order",
    cell: ({ targets }) => (
      <ol className="plain-list mono small">
        {targets?.map((target) => (
          <li key={target}>{target}</li>
        ))}
      </ol>
    ),
    isWideOnly: true,
    isShown: (rows) => rows.some(({ targets }) => targets !== null),
  },
  {
    title: "Fallbacks",
    cell: ({ fallbacks }) => fallbacks.join(", "),
    isWideOnly: true,
    isShown: (rows) => rows.some(({ fallbacks }) => fallbacks.length > 0),
  },
];

function ModelLink({ model }: { readonly model: ModelView }) {
  const href = useHref();
  const [{ environment }] = useUrl({ environment: "" });
  const own = { model: nameOf(model), ...(environment !== "" && { environment }) };
  return <Link href={href("/models", own)}>{model.alias}</Link>;
}
