"""How a model is put into words: numbers, counts, conditions, what short texts leave out.

One wording wherever a condition is shown: in reasons, rules, pictures and text.
"""
