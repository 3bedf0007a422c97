"""The estimators. scikit-learn lives here and nowhere below."""
