import "./field.css";
import { type ReactNode, useId } from "react";
import {
  Checkbox as AriaCheckbox,
  FieldError,
  Input,
  Label,
  Text,
  TextArea,
  TextField,
} from "react-aria-components";

interface Labelled {
  readonly label: string;
  readonly isLabelHidden?: boolean;
  /** Name of the field in the request, so that its errors stand here; see `Form`. */
  readonly name?: string;
  readonly hint?: ReactNode;
  readonly isRequired?: boolean;
  readonly isDisabled?: boolean;
}

export interface FieldProps extends Labelled {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly type?: "text" | "email" | "password" | "search" | "number" | "datetime-local" | "date";
  readonly autoComplete?: string;
  readonly placeholder?: string;
  readonly isMono?: boolean;
  readonly hasFocus?: boolean;
  /** Of a text with many lines. */
  readonly rows?: number;
  readonly min?: number | string;
}

/** A text with its label, hint and error. */
export function Field(props: FieldProps) {
  const {
    label,
    isLabelHidden = false,
    hint,
    rows,
    isMono = false,
    hasFocus = false,
    placeholder = "",
    min,
    ...rest
  } = props;
  const className = isMono ? "input mono" : "input";
  const { autoComplete = "off", type = "text", ...field } = rest;
  return (
    <TextField {...field} type={rows === undefined ? type : "text"} className="stack close">
      <Label className={isLabelHidden ? "hidden" : "label"}>{label}</Label>
      {rows === undefined ? (
        <Input
          className={className}
          autoComplete={autoComplete}
          autoFocus={hasFocus}
          placeholder={placeholder}
          {...(min !== undefined && { min })}
        />
      ) : (
        <TextArea className={className} rows={rows} placeholder={placeholder} />
      )}
      {hint !== undefined && (
        <Text slot="description" className="muted small">
          {hint}
        </Text>
      )}
      <FieldError className="bad-text small" />
    </TextField>
  );
}

export interface Option {
  readonly value: string;
  readonly label: string;
}

/** Each value says itself; `all` is the choice of none. */
export function optionsOf(values: readonly string[], all?: string): readonly Option[] {
  const none = all === undefined ? [] : [{ value: "", label: all }];
  return [...none, ...values.map((value) => ({ value, label: value }))];
}

/** Things are chosen by id and seen by name. */
export function namedOptions(
  things: readonly { readonly id: string; readonly name: string }[],
): readonly Option[] {
  return things.map(({ id, name }) => ({ value: id, label: name }));
}

export interface SelectProps extends Labelled {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly options: readonly Option[];
}

/** The browser's own, which phones and screen readers know best. */
export function Select(props: SelectProps) {
  const { label, hint, value, onChange, options, isLabelHidden = false } = props;
  const id = useId();
  return (
    <div className="stack close">
      <label className={isLabelHidden ? "hidden" : "label"} htmlFor={id}>
        {label}
      </label>
      <select
        id={id}
        className="input"
        name={props.name}
        required={props.isRequired}
        disabled={props.isDisabled}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
      {hint !== undefined && (
        <span id={`${id}-hint`} className="muted small">
          {hint}
        </span>
      )}
    </div>
  );
}

export function Checkbox({
  label,
  isSelected,
  onChange,
}: {
  readonly label: string;
  readonly isSelected: boolean;
  readonly onChange: (isSelected: boolean) => void;
}) {
  return (
    <AriaCheckbox className="checkbox" isSelected={isSelected} onChange={onChange}>
      <span className="box" aria-hidden="true">
        {isSelected ? "✓" : ""}
      </span>
      {label}
    </AriaCheckbox>
  );
}
