"""Gradient boosting with XGBoost's trees: on average precision (SGBAP), and the losses it is compared with."""
