"""The figures of all benchmarks, kept as data, and the page that is made from them."""
