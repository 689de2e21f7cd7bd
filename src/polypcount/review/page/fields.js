// The fields that describe a polyp. What is typed is sent when a field is left; what could not be saved stays in it.

import { make, setText } from "./dom.js";

const NAMES = ["name", "site", "size_mm", "histology", "note"];

export class Fields {
  #edited = new Set();
  #sending = new Set();

  constructor(polyp, describe) {
    this.describe = describe;
    const field = (name, label, options = {}, tag = "input") => {
      const input = make(tag, { id: `${name}-${polyp}`, name, autocomplete: "off", maxlength: 100, ...options });
      input.addEventListener("input", () => this.#edited.add(name));
      input.addEventListener("change", () => this.#send());
      this[name] = input;
      return make("label", { class: `field ${name}` }, make("span", { text: label }), input);
    };
    this.status = make("p", { class: "field-status", role: "status" });
    this.form = make("div", { class: "fields" },
      field("name", "Name"),
      field("site", "Site", { list: "sites" }),
      field("size_mm", "Size in mm", { type: "number", min: 0.1, max: 300, step: "any", inputmode: "decimal", maxlength: null }),
      field("histology", "Histology", { list: "histologies" }),
      field("note", "Note", { rows: 2, maxlength: 2000 }, "textarea"),
      this.status);
  }

  /** Takes the saved values, except where something was typed that is not saved yet. */
  update(polyp) {
    for (const name of NAMES) {
      const saved = String(polyp[name] ?? "");
      if (!this.#edited.has(name) && !this.#sending.has(name) && this[name].value !== saved) this[name].value = saved;
    }
  }

  async #send() {
    if (!this.size_mm.validity.valid) return setText(this.status, "Not saved: the size must be a number of millimetres from 0.1 to 300.");
    const sent = [...this.#edited];
    if (!sent.length) return;
    const values = Object.fromEntries(NAMES.map((name) => [name, this[name].value.trim()]));
    const size = values.size_mm;
    this.#edited.clear();
    for (const name of sent) this.#sending.add(name);
    setText(this.status, "");
    const taken = await this.describe({ ...values, size_mm: size === "" ? null : Number(size) });
    for (const name of sent) this.#sending.delete(name);
    if (taken) return;
    for (const name of sent) this.#edited.add(name);
    setText(this.status, "Not saved. Change a field to try again.");
  }
}
